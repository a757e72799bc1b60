/** The messages of a server's stdout, some of which are larger than a message may be. */
import { expect, it } from 'vitest'
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import {
  MAX_MESSAGE_BYTES,
  MessageLines,
  UnknownRequestError,
} from '../../../../src/command-tasks/instances/message-lines.js'

const CHUNK = 64 * 1024
const LARGE = 'x'.repeat(MAX_MESSAGE_BYTES)
const PING: JSONRPCMessage = { jsonrpc: '2.0', id: 'p', method: 'ping' }

/** Reads lines in chunks, as a pipe delivers them. */
function read(...lines: readonly string[]) {
  const messages: JSONRPCMessage[] = []
  const errors: Error[] = []
  const reader = new MessageLines(
    (message) => messages.push(message),
    (error) => errors.push(error),
  )
  const all = Buffer.from(lines.map((line) => `${line}\n`).join(''))
  for (let at = 0; at < all.length; at += CHUNK) reader.read(all.subarray(at, at + CHUNK))
  return { messages, errors }
}

const refusal = (id: string | number) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32000, message: expect.stringContaining('exceeds 10 MiB') as string },
})

it.each([
  ['first', `{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"${LARGE}"}],"id":1}}`, 7],
  ['first, with spaces', `{"jsonrpc": "2.0", "id": 7, "result": {"content": "${LARGE}"}}`, 7],
  ['last', `{"result":{"id":1,"content":"${LARGE}"},"jsonrpc":"2.0","id":"seven"}`, 'seven'],
  ['before the version', `{"result":{"content":"${LARGE}"},"id":7,"jsonrpc":"2.0"}\r`, 7],
])('F13: an answer above the maximum is an error of its request, when its id is %s', (_, line, id) => {
  const { messages, errors } = read(line, JSON.stringify(PING))
  expect(messages).toEqual([refusal(id), PING])
  expect(errors).toEqual([])
})

it('F13: an answer above the maximum whose request is unknown differs from a message that nobody waits for', () => {
  const nested = read(`{"result":{"content":"${LARGE}","id":3}}`)
  expect(nested.messages).toEqual([])
  expect(nested.errors).toEqual([expect.any(UnknownRequestError)])
  const { messages, errors } = read(
    `{"jsonrpc":"2.0","method":"notifications/message","params":"${LARGE}"}`,
    `{"method":"sampling/createMessage","params":"${LARGE}","jsonrpc":"2.0","id":3}`,
    `{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":"${LARGE}"}`,
    LARGE,
    JSON.stringify(PING),
  )
  expect(messages).toEqual([PING])
  expect(errors.map((error) => [error instanceof UnknownRequestError, error.message])).toEqual(
    Array.from({ length: 3 }, () => [false, 'it sent a message above 10 MiB, which is the maximum over stdio']),
  )
})

it('messages are found at every place of a chunk, and a message of the maximum is read', () => {
  const start = '{"jsonrpc":"2.0","method":"m","params":{"text":"'
  const largest = `${start}${'é'.repeat((MAX_MESSAGE_BYTES - start.length - 3) / 2)}"}}`
  const { messages, errors } = read('', JSON.stringify(PING), largest, 'no JSON', JSON.stringify(PING))
  expect(messages.map((message) => 'method' in message && message.method)).toEqual(['ping', 'm', 'ping'])
  expect(errors).toEqual([])
})
