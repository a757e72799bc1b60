/** `agent-tasks serve --store` that is killed, with a real worker over a real socket. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { readStore } from '../../src/store/index.js'

type Line = Readonly<Record<string, unknown>>

interface Program {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
  next(): Promise<Line>
  /** The next line that has this field. It skips the lines before that one. */
  line(field: string): Promise<Line>
}

function start(args: readonly string[]): Program {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const next = async (): Promise<Line> => {
    const line = await lines.next()
    if (line.done === true) throw new Error(`${args.join(' ')} ended before its next line`)
    return JSON.parse(line.value) as Line
  }
  return {
    child,
    ended,
    next,
    line: async (field) => {
      for (;;) {
        const line = await next()
        if (field in line) return line
      }
    },
  }
}

const folderOfTest = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The worker connects to the same port again. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const workerFile = fileURLToPath(new URL('../support/programs/busy-worker.ts', import.meta.url))

it('K12: a killed server keeps results, fails the command in flight, and goes on with its queue when the busy worker is free', async () => {
  const file = join(folderOfTest(), 'tasks.db')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const serve = async (): Promise<Program> => {
    const server = start([
      'dist/src/cli/main.js',
      'serve',
      '--store',
      file,
      '--port',
      String(port),
      '--ws-port',
      '0',
      '--json',
    ])
    await server.line('httpUrl')
    return server
  }
  const submit = async (...tools: string[]): Promise<string> => {
    const commands = tools.map((tool_name) => ({ tool_name, args: { tool_name } }))
    const response = await fetch(`${url}/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': tools.join('-') },
      body: JSON.stringify({ task_name: 'a task', commands }),
    })
    expect(response.status).toBe(201)
    return ((await response.json()) as { taskId: string }).taskId
  }
  const taskOf = async (id: string): Promise<Line> =>
    ((await (await fetch(`${url}/tasks/${id}`)).json()) as { task: Line }).task

  const first = await serve()
  const worker = start([workerFile, url])
  await worker.line('connected')
  const interrupted = await submit('note', 'hold', 'note')
  const queued = [await submit('note'), await submit('note', 'note')]
  expect(await worker.line('held')).toEqual({ held: interrupted })
  first.child.kill('SIGKILL')
  await first.ended
  expect(readStore(file).commandTasks.map(({ id, status }) => [id, status])).toEqual([
    [interrupted, 'running'],
    [queued[0], 'queued'],
    [queued[1], 'queued'],
  ])

  const second = await serve()
  expect(await submit('note')).toBe(queued[0])
  const order: string[] = []
  for (const field of ['stopped', 'noted', 'noted', 'noted']) {
    const line = await worker.line(field)
    order.push(`${field} ${String(line[field])}`)
  }
  expect(order).toEqual([
    `stopped ${interrupted}`,
    `noted ${queued[0] ?? ''}`,
    `noted ${queued[1] ?? ''}`,
    `noted ${queued[1] ?? ''}`,
  ])
  expect(await taskOf(interrupted)).toMatchObject({
    status: 'failed',
    error: { code: 'INTERRUPTED', commandId: 'cmd_2' },
    commands: [
      { status: 'success', result: { structuredContent: { tool_name: 'note' } } },
      { status: 'error', error: { code: 'INTERRUPTED' } },
      { status: 'skipped' },
    ],
  })
  await expect.poll(async () => (await taskOf(queued[1] ?? ''))['status']).toBe('completed')
  second.child.kill('SIGTERM')
  expect(await second.ended).toEqual([0, null])
  expect(readStore(file).commandTasks.map(({ status }) => status)).toEqual(['failed', 'completed', 'completed'])
})

it('K12: a killed server and a killed worker both start again: the worker with its secretFile goes on with its queue', async () => {
  const folder = folderOfTest()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const secretFile = join(folder, 'worker.json')
  const keptWorker = fileURLToPath(new URL('../support/programs/kept-worker.ts', import.meta.url))
  const serve = async (): Promise<Program> => {
    const options = ['--store', join(folder, 'tasks.db'), '--port', String(port), '--ws-port', '0', '--json']
    const server = start(['dist/src/cli/main.js', 'serve', ...options])
    await server.line('httpUrl')
    return server
  }
  const submit = async (tool_name: string): Promise<string> => {
    const response = await fetch(`${url}/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task_name: tool_name, commands: [{ tool_name }] }),
    })
    return ((await response.json()) as { taskId: string }).taskId
  }
  const taskOf = async (id: string): Promise<Line> =>
    ((await (await fetch(`${url}/tasks/${id}`)).json()) as { task: Line }).task

  const first = await serve()
  const worker = start([keptWorker, url, secretFile])
  await worker.line('connected')
  const interrupted = await submit('hold')
  const queued = await submit('note')
  expect(await worker.line('held')).toEqual({ held: interrupted })
  for (const { child, ended } of [first, worker]) {
    child.kill('SIGKILL')
    await ended
  }

  await serve()
  const stranger = start([keptWorker, url])
  expect(await stranger.line('refused')).toMatchObject({
    refused: 'INSTANCE_ID_IN_USE',
    message: expect.stringMatching(/^Instance id "w" is reserved .* for another \d+ s\. .*`secretFile`/) as string,
  })
  const again = start([keptWorker, url, secretFile])
  // The queued task can start before the worker's own code goes on.
  expect([await again.next(), await again.next()]).toEqual(
    expect.arrayContaining([{ connected: 'w' }, { noted: queued }]),
  )
  await expect.poll(async () => (await taskOf(queued))['status']).toBe('completed')
  expect(await taskOf(interrupted)).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } })
})

it('a file that is no store, and one that is in use, stop the start with one message and exit code 2', async () => {
  const folder = folderOfTest()
  const run = async (file: string): Promise<[unknown, string]> => {
    const args = ['dist/src/cli/main.js', 'serve', '--demo', '--store', file, '--port', '0', '--ws-port', '0']
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [ended, message] = await Promise.all([once(child, 'exit'), text(child.stderr)])
    return [(ended as unknown[])[0], message]
  }
  const notes = join(folder, 'notes.txt')
  writeFileSync(notes, 'my notes')
  const [code, message] = await run(notes)
  expect([code, message.trim().split('\n')]).toEqual([2, [expect.stringContaining('it is not an SQLite database')]])
  expect(readFileSync(notes, 'utf8')).toBe('my notes')
  const file = join(folder, 'tasks.db')
  const owner = start(['dist/src/cli/main.js', 'serve', '--store', file, '--port', '0', '--ws-port', '0', '--json'])
  await owner.line('httpUrl')
  const [inUse, why] = await run(file)
  expect([inUse, why]).toEqual([2, expect.stringContaining(`in use by process ${owner.child.pid ?? 0}`)])
})
