/** The socket of a run's questions: who may ask, how much, and what ends a question. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect, Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TaskAnswer } from '../../../src/index.js'
import { processRunner } from '../../../src/index.js'
import { MAX_CONNECTIONS, MAX_LINE_CHARS, openQuestionSocket } from '../../../src/runners/question-socket.js'
import { run } from '../cli/command-line.js'
import { until } from '../../support/lifelines.js'
import { createRunContext, runInput } from '../../support/run-context.js'
import { deferred } from '../tools/tool-host.js'

interface Asked {
  readonly question: unknown
  readonly signal: AbortSignal | undefined
  readonly answer: (answer: TaskAnswer) => void
  readonly fail: (error: unknown) => void
}

async function setUp() {
  const asked: Asked[] = []
  const socket = await openQuestionSocket((question, options) => {
    const { promise, resolve, reject } = deferred<TaskAnswer>()
    asked.push({ question, signal: options?.signal, answer: resolve, fail: reject })
    return promise
  })
  onTestFinished(() => socket.close())
  const { AGENT_TASK_SOCKET: path = '', AGENT_TASK_SOCKET_TOKEN: token = '' } = socket.env
  /** Opens a connection; resolves with what it is sent before it is closed. */
  const open = (line?: unknown): { connection: Socket; received: Promise<string> } => {
    const connection = connect(path)
    onTestFinished(() => void connection.destroy())
    let text = ''
    connection.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    connection.on('error', () => undefined)
    const received = new Promise<string>((resolve) => connection.once('close', () => resolve(text)))
    if (line !== undefined) connection.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`)
    return { connection, received }
  }
  const error = async (line: unknown) =>
    (JSON.parse(await open(line).received) as { error: { code: string } }).error.code
  return { socket, asked, path, token, open, error }
}

describe('the socket of a run', () => {
  it('F6: is in a folder of its own that only its user can enter, and is removed with it', async () => {
    const { socket, path } = await setUp()
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    socket.close()
    expect(existsSync(dirname(path))).toBe(false)
  })

  it('F6: answers each question with one line', async () => {
    const { asked, token, open } = await setUp()
    const { received } = open({ token, message: 'Which?', schema: { type: 'object' } })
    await until(() => asked.length === 1)
    expect(asked[0]?.question).toEqual({ message: 'Which?', schema: { type: 'object' } })
    asked[0]?.answer({ action: 'accept', content: { a: 1 } })
    expect(await received).toBe('{"action":"accept","content":{"a":1}}\n')
  })

  it('F6: refuses what has no token, is no JSON, or is too long, and asks nothing', async () => {
    const { asked, error, token } = await setUp()
    expect(await error({ token: 'guessed', message: 'Which?' })).toBe('UNAUTHORIZED')
    expect(await error({ message: 'Which?' })).toBe('INVALID_INPUT')
    expect(await error('Which?\n')).toBe('INVALID_INPUT')
    expect(await error({ token, message: 'x'.repeat(MAX_LINE_CHARS) })).toBe('LINE_TOO_LONG')
    expect(await error('x'.repeat(MAX_LINE_CHARS + 1))).toBe('LINE_TOO_LONG')
    expect(asked).toEqual([])
  })

  it('F6: takes a line of exactly as many characters as one may have, in whatever pieces it comes', async () => {
    const { asked, token, open, error } = await setUp()
    const length = JSON.stringify({ token, message: '' }).length
    const line = JSON.stringify({ token, message: 'x'.repeat(MAX_LINE_CHARS - length) })
    const { connection, received } = open()
    connection.write(line)
    setImmediate(() => connection.write('\n{"another": "line"}\n'))
    await until(() => asked.length === 1)
    asked[0]?.answer({ action: 'cancel' })
    expect(await received).toBe('{"action":"cancel"}\n')
    expect(await error(`${line}x\n`)).toBe('LINE_TOO_LONG')
    expect(asked).toHaveLength(1)
  })

  it('F6: asks the first line of a connection alone, also when another one comes while its question is open', async () => {
    const { asked, error, open, token } = await setUp()
    const { connection, received } = open({ token, message: 'Which?' })
    await until(() => asked.length === 1)
    await new Promise((resolve) => connection.write(`${JSON.stringify({ token, message: 'Another?' })}\n`, resolve))
    // What was written before is read before the line of a later connection is.
    expect(await error('Which?\n')).toBe('INVALID_INPUT')
    expect(asked).toHaveLength(1)
    asked[0]?.answer({ action: 'accept', content: { a: 1 } })
    expect(await received).toBe('{"action":"accept","content":{"a":1}}\n')
  })

  it('F6: takes a bounded number of questions at once', async () => {
    const { asked, error, open, token } = await setUp()
    for (let index = 0; index < MAX_CONNECTIONS; index += 1) open({ token, message: 'Which?' })
    await until(() => asked.length === MAX_CONNECTIONS)
    expect(await error({ token, message: 'One more?' })).toBe('TOO_MANY_QUESTIONS')
    asked[0]?.answer({ action: 'cancel' })
    const { received } = open()
    received.catch(() => undefined)
    expect(asked).toHaveLength(MAX_CONNECTIONS)
  })

  it('F6: withdraws the question of a connection that has closed', async () => {
    const { asked, token, open } = await setUp()
    const { connection } = open({ token, message: 'Which?' })
    await until(() => asked.length === 1)
    expect(asked[0]?.signal?.aborted).toBe(false)
    connection.destroy()
    await until(() => asked[0]?.signal?.aborted === true)
  })

  it('F6: withdraws it when the program has closed its side alone, too', async () => {
    const { asked, token, open } = await setUp()
    const { connection } = open({ token, message: 'Which?' })
    await until(() => asked.length === 1)
    connection.end()
    await until(() => asked[0]?.signal?.aborted === true)
  })
})

describe('agent-tasks ask', () => {
  it('F6: prints the answer: a single field as text, others as JSON, or all of it', async () => {
    const { socket, asked } = await setUp()
    const ask = async (content: Record<string, unknown>, ...args: string[]) => {
      const ended = run(['ask', 'Which?', ...args], { env: socket.env })
      const count = asked.length
      await until(() => asked.length > count)
      asked.at(-1)?.answer({ action: 'accept', content })
      const { exitCode, stdout } = await ended
      return [exitCode, stdout]
    }
    expect(await ask({ answer: 'main' })).toEqual([0, 'main\n'])
    expect(await ask({ sure: true })).toEqual([0, 'true\n'])
    expect(await ask({ a: 1, b: 'two' })).toEqual([0, '{"a":1,"b":"two"}\n'])
    expect(await ask({ answer: 'main' }, '--json')).toEqual([0, '{"action":"accept","content":{"answer":"main"}}\n'])
    expect(await ask({ answer: 'b' }, '--choices', 'a, b')).toEqual([0, 'b\n'])
    expect(asked.at(-1)?.question).toMatchObject({ schema: { properties: { answer: { enum: ['a', 'b'] } } } })
  })

  it('F6: says with its exit code why there is no answer', async () => {
    const { socket, asked, token } = await setUp()
    const codeOf = async (end: (last: Asked) => void) => {
      const count = asked.length
      const ended = run(['ask', 'Which?'], { env: socket.env })
      await until(() => asked.length > count)
      end(asked.at(-1)!)
      return (await ended).exitCode
    }
    expect(await codeOf(({ answer }) => answer({ action: 'decline' }))).toBe(7)
    expect(await codeOf(({ fail }) => fail(Object.assign(new Error('no'), { code: 'X' })))).toBe(2)
    expect(await codeOf(() => socket.close())).toBe(3)
    const gone = await run(['ask', 'Which?'], { env: socket.env })
    expect([gone.exitCode, gone.stderr]).toEqual([
      3,
      'agent-tasks: The host of the task has ended, so there will be no answer.\n',
    ])
    expect(token).not.toBe('')
    const alone = await run(['ask', 'Which?'])
    const advice = 'run this in a program of a task, and set "asks": true for its subagent'
    expect([alone.exitCode, alone.stderr]).toEqual([2, expect.stringContaining(advice)])
  })

  it('F6: withdraws its question when its time is up', async () => {
    const { socket, asked } = await setUp()
    const { exitCode, stderr } = await run(['ask', 'Which?', '--timeout-seconds', '1'], { env: socket.env })
    expect([exitCode, stderr]).toEqual([8, 'The question was withdrawn, because there was no answer within 1 s.\n'])
    await until(() => asked[0]?.signal?.aborted === true)
  })

  it.each([
    [['--timeout-seconds', '0'], '--timeout-seconds'],
    [['--choices', 'a,,b'], '--choices'],
    [['--choices', 'a', '--schema', 'x.json'], '--choices'],
    [['--schema', '/nowhere.json'], '--schema'],
  ])('refuses %j', async (args, named) => {
    const { exitCode, stderr } = await run(['ask', 'Which?', ...args], { env: { AGENT_TASK_SOCKET: '/nowhere' } })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(named)])
  })
})

it('F6: a socket that cannot be opened leaves no folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-task-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  const listen = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
    queueMicrotask(() => this.emit('error', new Error('too many open files')))
    return this
  })
  onTestFinished(() => listen.mockRestore())
  const opened = openQuestionSocket(() => Promise.reject(new Error('nobody asks')))
  expect(readdirSync(folder)).toHaveLength(1)
  await expect(opened).rejects.toThrow('too many open files')
  expect(readdirSync(folder)).toEqual([])
})

it('F6: a socket whose path is too long is not opened: it would be in another folder', async () => {
  const above = mkdtempSync(join(tmpdir(), 'agent-task-test-'))
  onTestFinished(() => rmSync(above, { recursive: true }))
  const folder = join(above, 'x'.repeat(100 - above.length))
  mkdirSync(folder)
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  await expect(openQuestionSocket(() => Promise.reject(new Error('nobody asks')))).rejects.toThrow(
    /^The socket for questions would be .*: 1\d\d bytes, expected at most 103\. Set TMPDIR to a folder with a shorter path\.$/,
  )
  expect([readdirSync(folder), readdirSync(above)]).toEqual([[], [basename(folder)]])
})

it('F6: the longest path that is taken has 103 bytes, and characters of two bytes count twice', async () => {
  const above = mkdtempSync(join(tmpdir(), 'agent-task-test-'))
  onTestFinished(() => rmSync(above, { recursive: true }))
  onTestFinished(() => void vi.unstubAllEnvs())
  /** Opens a socket in a folder whose name makes the path this long. */
  const openAt = async (bytes: number, letter: string): Promise<string> => {
    const rest = bytes - Buffer.byteLength(join(above, '/', 'agent-task-XXXXXX', 'questions')) - 1
    const name =
      letter.repeat(Math.floor(rest / Buffer.byteLength(letter))) + 'x'.repeat(rest % Buffer.byteLength(letter))
    mkdirSync(join(above, name))
    vi.stubEnv('TMPDIR', join(above, name))
    const socket = await openQuestionSocket(() => Promise.reject(new Error('nobody asks')))
    socket.close()
    return socket.env['AGENT_TASK_SOCKET'] ?? ''
  }
  expect(Buffer.byteLength(await openAt(103, 'x'))).toBe(103)
  await expect(openAt(104, 'x')).rejects.toMatchObject({ code: 'SOCKET_PATH_TOO_LONG' })
  expect(Buffer.byteLength(await openAt(103, 'é'))).toBe(103)
  await expect(openAt(104, 'é')).rejects.toMatchObject({ code: 'SOCKET_PATH_TOO_LONG' })
})

it('F6: a question that is closed makes room for another', async () => {
  const { asked, token, open } = await setUp()
  for (let count = 1; count <= MAX_CONNECTIONS + 1; count += 1) {
    const { received } = open({ token, message: `Question ${count}` })
    // Refused at once, it is closed without a question.
    await Promise.race([until(() => asked.length === count), received])
    asked.at(-1)?.answer({ action: 'accept', content: { count } })
    expect(await received).toBe(`{"action":"accept","content":{"count":${count}}}\n`)
  }
})

it('F6: a program is not started when the socket for its questions cannot be opened', async () => {
  vi.stubEnv('TMPDIR', '/no/such/folder')
  onTestFinished(() => void vi.unstubAllEnvs())
  const runner = processRunner({ command: 'echo', args: ['started'], questions: true })
  const context = createRunContext()
  await expect(runner.run(runInput(), context)).rejects.toMatchObject({
    code: 'PROCESS_NOT_STARTED',
    message: 'Command "echo" was not started: the socket for its questions could not be opened.',
    cause: { code: 'ENOENT' },
  })
  expect(context.output()).toBe('')
})

it('F6: a program that has gone before it was refused disturbs no other question', async () => {
  const { asked, open, token } = await setUp()
  const leave = ({ connection }: ReturnType<typeof open>, line = ''): Promise<void> =>
    new Promise((resolve) => {
      connection.once('close', () => resolve())
      connection.once('connect', () => connection.write(line, () => connection.destroy()))
    })
  await leave(open(), 'Which?\n')
  for (let index = 0; index < MAX_CONNECTIONS; index += 1) open({ token, message: 'Which?' })
  await until(() => asked.length === MAX_CONNECTIONS)
  await leave(open())
  asked[0]?.answer({ action: 'cancel' })
  await until(() => asked[1]?.signal?.aborted === false)
  expect(asked).toHaveLength(MAX_CONNECTIONS)
})
