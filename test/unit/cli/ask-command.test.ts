// `agent-tasks ask` on a socket whose host is the test: what becomes of each answer.
import { mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { run } from './command-line.js'

/** @param answer answers a line of the program */
async function ask(answer: (socket: Socket, line: string) => void, ...args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'agent-task-ask-'))
  const path = join(folder, 's')
  const lines: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.setEncoding('utf8').once('data', (line: string) => {
      lines.push(line)
      answer(socket, line)
    })
  }).listen(path)
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  await once(server, 'listening')
  const env = { AGENT_TASK_SOCKET: path, AGENT_TASK_TOKEN: 'secret' }
  return { lines, ...(await run(['ask', 'Which?', ...args], { env })) }
}

const refuse = (code: string) => (socket: Socket) =>
  void socket.write(`${JSON.stringify({ error: { code, message: `because ${code}` } })}\n`)

it.each([
  ['QUESTION_WITHDRAWN', 8],
  ['INVALID_INPUT', 2],
  ['LINE_TOO_LONG', 2],
  ['TOO_MANY_QUESTIONS', 4],
])('a question that is refused with %s ends it with %d, and its message', async (code, exitCode) => {
  const ended = await ask(refuse(code))
  expect([ended.exitCode, ended.stdout, ended.stderr]).toEqual([exitCode, '', `agent-tasks: because ${code}\n`])
})

it('an answer is whole at its line break, wherever it was parted', async () => {
  const text = `${JSON.stringify({ action: 'accept', content: { answer: 'ü' } })}\n`
  const bytes = Buffer.from(text)
  const { exitCode, stdout, lines } = await ask((socket) => {
    const middle = bytes.indexOf(0xc3) + 1
    socket.write(bytes.subarray(0, middle))
    setImmediate(() => socket.write(bytes.subarray(middle)))
  })
  expect([exitCode, stdout]).toEqual([0, 'ü\n'])
  expect(lines).toEqual([expect.stringMatching(/^\{.*"message":"Which\?".*\}\n$/)])
  expect(lines[0]).not.toContain('schema')
})

it('an answer that is no answer is invalid input, and a host that closes is gone', async () => {
  expect((await ask((socket) => void socket.write('no JSON\n'))).exitCode).toBe(2)
  expect((await ask((socket) => void socket.write('{"action":"maybe"}\n'))).exitCode).toBe(2)
  const gone = await ask((socket) => void socket.end('{"action":'))
  expect([gone.exitCode, gone.stderr]).toEqual([
    3,
    'agent-tasks: The host of the task has ended, so there will be no answer.\n',
  ])
})

it.each(['decline', 'cancel'])('a question that got %s is not answered, and --json says how', async (action) => {
  const say = (socket: Socket): void => void socket.write(`${JSON.stringify({ action })}\n`)
  const plain = await ask(say)
  expect([plain.exitCode, plain.stdout, plain.stderr]).toEqual([7, '', 'The question was declined.\n'])
  expect(await ask(say, '--json')).toMatchObject({ exitCode: 7, stdout: `{"action":"${action}"}\n` })
})

it('an accepted answer without content is empty, and leaves no timer of its time limit', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const say = (socket: Socket): void => void socket.write('{"action":"accept"}\n')
  expect(await ask(say, '--timeout-seconds', '1000')).toMatchObject({ exitCode: 0, stdout: '{}\n' })
  expect(vi.getTimerCount()).toBe(0)
})
