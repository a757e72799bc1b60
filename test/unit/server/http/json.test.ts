// The body of a request, on a stream that the test writes.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { readBody } from '../../../../src/server/http/json.js'

const EVENTS = ['data', 'end', 'error', 'close'] as const
const DROPPED = 16 * 1024 * 1024

function open(headers: IncomingMessage['headers'] = {}) {
  const stream = new PassThrough()
  const counts = (): number[] => EVENTS.map((event) => stream.listenerCount(event))
  const before = counts()
  const request = Object.assign(stream, { headers }) as unknown as IncomingMessage
  return { stream, request, isLeft: () => expect(counts()).toEqual(before) }
}

it('a body has as many bytes as it may, not characters, and is whole wherever it was parted', async () => {
  const { stream, request, isLeft } = open()
  const body = readBody(request, 6)
  const bytes = Buffer.from('éäü')
  stream.write(bytes.subarray(0, 3))
  stream.end(bytes.subarray(3))
  expect(await body).toBe('éäü')
  isLeft()
  const larger = open()
  const refused = readBody(larger.request, 5)
  larger.stream.end('éäü')
  expect(await refused).toBeUndefined()
  larger.isLeft()
})

it('a body that is too large is read to its end, and no further than 16 MiB beyond its limit', async () => {
  const { stream, request, isLeft } = open()
  let isAnswered = false
  const body = readBody(request, 10).finally(() => (isAnswered = true))
  stream.write(Buffer.alloc(DROPPED + 10))
  await setImmediate()
  expect(isAnswered).toBe(false)
  stream.write('x')
  expect(await body).toBeUndefined()
  isLeft()
})

it('a body that says that it is larger than what is dropped is not read at all', async () => {
  const { request, isLeft } = open({ 'content-length': String(DROPPED + 11) })
  expect(await readBody(request, 10)).toBeUndefined()
  isLeft()
  const { stream, request: fits } = open({ 'content-length': String(DROPPED + 10) })
  const body = readBody(fits, 10)
  stream.end('small')
  expect(await body).toBe('small')
})

it('a client that goes away in the middle has no body', async () => {
  const { stream, request } = open()
  const body = readBody(request, 10)
  stream.write('part')
  await setImmediate()
  const refused = expect(body).rejects.toThrow('The client went away before its request was complete.')
  stream.destroy()
  await once(stream, 'close')
  await refused
})
