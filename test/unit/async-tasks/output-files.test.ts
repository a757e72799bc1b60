/** The whole output of tasks in files: what they contain, who can read them, and when they are removed. */
import fs, {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  AsyncTaskManager,
  createAgentTasks,
  processRunner,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunFunction,
} from '../../../src/index.js'
import { memoryStore, sqliteStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { systemClock } from '../../../src/system/clock.js'
import { leftProgram } from '../../support/left-program.js'

/** How long a test waits for a real program. */
const WAIT = { timeout: 10_000 }

let root: string
let folder: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'agent-tasks-output-files-'))
  folder = join(root, 'made', 'output')
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
})

function setUp({ maxBytes, ...options }: AsyncTaskManagerOptions & { readonly maxBytes?: number } = {}) {
  const onError = vi.fn()
  const outputFiles = { folder, ...(maxBytes !== undefined && { maxBytes }) }
  const clock = createManualClock(Date.now())
  const manager = new AsyncTaskManager({ clock, graceMs: 0, onError, outputBytes: 4, ...options, outputFiles })
  onTestFinished(() => manager.dispose())
  const write = (id: string, ...texts: readonly string[]): void => {
    manager.registerTask({ id, subagentName: 'writer', goalPrompt: 'write' })
    for (const text of texts) manager.appendOutput(id, text)
  }
  const pathOf = (id: string): string => manager.getTask(id)?.outputFile ?? 'no file'
  return { manager, clock, onError, write, pathOf, read: (id: string) => readFileSync(pathOf(id), 'utf8') }
}

/** The open files of this process below the folder of the test. */
function openFiles(): string[] {
  const targets = readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return ''
    }
  })
  return targets.filter((target) => target.startsWith(root) && target.includes('output-'))
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

describe('a file of output', () => {
  it('F2: has all that a task has written, as it comes, for the user of the process only', () => {
    const { manager, write, pathOf, read } = setUp()
    write('a', 'one ', 'twö ')
    expect(read('a')).toBe('one twö ')
    expect([modeOf(pathOf('a')), modeOf(folder), modeOf(dirname(folder))]).toEqual(['600', '700', '700'])
    manager.appendOutput('a', '🎉')
    expect(openFiles()).toEqual([pathOf('a')])
    manager.completeTask('a', {})
    expect(read('a')).toBe('one twö 🎉')
    expect(openFiles()).toEqual([])
    expect(manager.appendOutput('a', 'late')).toBe(false)
    expect(read('a')).toBe('one twö 🎉')
  })

  it('F2: is complete when others learn of the end', () => {
    const { manager, write, read } = setUp({ maxBytes: 3 })
    const seen: string[] = []
    manager.settled$.subscribe(({ id }) => seen.push(read(id)))
    write('a', 'abcdef')
    manager.completeTask('a', {})
    expect(seen).toEqual(['abc\n[3 bytes of output are left out here: the limit is 3 bytes (outputFiles.maxBytes)]\n'])
  })

  it('F2: ends with whole characters at its limit, and has nothing after the gap', () => {
    const { manager, write, read } = setUp({ maxBytes: 4 })
    write('a', 'ab', '😀', 'c')
    expect(read('a')).toBe('ab')
    manager.completeTask('a', {})
    expect(read('a')).toMatch(/^ab\n\[5 bytes of output are left out here: .*\]\n$/)
    write('b', 'abcd')
    manager.completeTask('b', {})
    expect(read('b')).toBe('abcd')
  })

  it('F2: is made only for a task that writes', () => {
    const { manager, write } = setUp()
    write('a', '')
    manager.completeTask('a', { final_message: 'done' })
    expect(manager.getTask('a')).not.toHaveProperty('outputFile')
    expect(readdirSync(folder)).toEqual([])
  })

  it.each(['../../escape', '/etc/passwd', '..', 'x'.repeat(500), '\ud800'])(
    'F2: stays in its folder whatever the id of its task is (%j)',
    (id) => {
      const { write, pathOf, read } = setUp()
      write(id, 'text')
      expect([dirname(pathOf(id)), read(id)]).toEqual([folder, 'text'])
      expect(readdirSync(root)).toEqual(['made'])
    },
  )

  it('F2: goes on in the next run of its task', async () => {
    const clock = createManualClock()
    const { manager, read } = setUp({ clock })
    const run = vi.fn((_input: unknown, context: RunContext) => {
      context.append(`run ${run.mock.calls.length}\n`)
      return run.mock.calls.length === 1
        ? Promise.reject(Object.assign(new Error('once'), { code: 'RATE_LIMITED' }))
        : Promise.resolve({})
    })
    const retry = { attempts: 2, on: ['rate-limited'] } as const
    manager.launch({ id: 'a', subagentName: 'writer', goalPrompt: 'write' }, { run, retry })
    await vi.waitFor(() => expect(manager.getTask('a')?.status).toBe('queued'))
    expect(openFiles()).toEqual([])
    clock.advance(60_000)
    await manager.waitFor(['a'])
    expect(read('a')).toBe('run 1\nrun 2\n')
    expect(openFiles()).toEqual([])
  })

  it('F2: is named in the message of its task and by check_async_tasks', async () => {
    const tasks = createAgentTasks({
      outputFiles: { folder },
      subagents: {
        writer: (_request, context) => {
          context.append('text')
          return Promise.resolve({ final_message: 'done' })
        },
      },
    })
    const { id, result } = tasks.launch('writer', 'write')
    await result
    const path = tasks.manager.getTask(id)?.outputFile ?? ''
    expect(readFileSync(path, 'utf8')).toBe('text')
    const { llmContent } = await tasks.tools.check_async_tasks.execute({ task_id: id, action: 'peek' })
    expect(llmContent).toContain(JSON.stringify(path))
    const text = tasks.reminders.formatCompletionNotification(tasks.manager.getTask(id)!)
    expect(JSON.parse(text)).toMatchObject({ final_message: 'done', output_file: path })
    await tasks.dispose()
  })
})

describe('an error of the file system', () => {
  const failOnce = (): void => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    const write = vi.spyOn(fs, 'appendFileSync')
    write.mockImplementationOnce(() => {
      throw full
    })
    onTestFinished(() => write.mockRestore())
  }

  it('F2: does not fail the task, is reported once, and no file is named that is not there', () => {
    const { manager, onError, write } = setUp()
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    write('a', 'one', 'two')
    manager.completeTask('a', {})
    expect(manager.getTask('a')).toMatchObject({ status: 'completed' })
    expect(manager.getTask('a')).not.toHaveProperty('outputFile')
    expect(onError.mock.calls.map(([error, from]: unknown[]) => [String(error), from])).toEqual([
      [
        expect.stringMatching(/^Error: The output could not be written to .*: ENOTDIR/),
        { source: 'output', taskId: 'a' },
      ],
    ])
  })

  it('F2: ends the file where it occurred, and the file says so if it can', () => {
    const { manager, onError, write, read } = setUp()
    write('a', 'one ')
    failOnce()
    manager.appendOutput('a', 'two ')
    manager.appendOutput('a', 'three')
    manager.completeTask('a', {})
    expect(read('a')).toMatch(/^one \n\[9 bytes of output are left out here: The output could not .*: ENOSPC.*\]\n$/)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(openFiles()).toEqual([])
  })

  it('F2: in the last line is reported when the task has ended', () => {
    const { manager, onError, write, read } = setUp({ maxBytes: 1 })
    write('a', 'ab')
    failOnce()
    manager.completeTask('a', {})
    expect([manager.getTask('a')?.status, read('a')]).toEqual(['completed', 'a'])
    expect(onError).toHaveBeenCalledTimes(1)
    expect(openFiles()).toEqual([])
  })

  it('F2: refuses a manager whose folder cannot be made, and its store is free', async () => {
    writeFileSync(join(root, 'file'), '')
    const store = sqliteStore(join(root, 'tasks.db'))
    const at = join(root, 'file', 'output')
    expect(() => new AsyncTaskManager({ store, outputFiles: { folder: at } })).toThrow(
      `options.outputFiles.folder: got ${JSON.stringify(at)}, expected a folder that exists or can be made (ENOTDIR`,
    )
    const manager = new AsyncTaskManager({ store, outputFiles: { folder } })
    await manager.dispose()
  })

  it('refuses malformed options', () => {
    const create = (outputFiles: object) => () =>
      new AsyncTaskManager({ outputFiles: outputFiles as { folder: string } })
    expect(create({})).toThrow('options.outputFiles.folder: got undefined, expected a string of at least 1 character.')
    expect(create({ folder: 5 })).toThrow('options.outputFiles.folder: got 5, expected a string')
    expect(create({ folder, maxBytes: 0 })).toThrow('outputFiles.maxBytes: got 0, expected an integer >= 1.')
    expect(create({ folder, max: 1 })).toThrow('options.outputFiles.max: got 1, expected a known name')
    expect(existsSync(folder)).toBe(false)
  })
})

describe('the files of output', () => {
  it('F2: are removed with the records of their tasks, and only those', async () => {
    const { manager, write, pathOf } = setUp({ maxAsyncTasks: 1 })
    const other = join(folder, 'output-of-the-user.log')
    writeFileSync(other, 'kept')
    for (const id of ['a', 'b', 'c']) {
      write(id, id)
      manager.completeTask(id, {})
    }
    const [first, second, third] = ['a', 'b', 'c'].map(pathOf)
    for (const id of ['a', 'b', 'c']) manager.markNotified(id)
    expect(manager.getTask('a')).toBeUndefined()
    expect([first, second, third].map((path) => existsSync(path!))).toEqual([false, true, true])
    write('d', 'd')
    const last = pathOf('d')
    await manager.dispose()
    expect([second, third, last].map((path) => existsSync(path!))).toEqual([false, false, false])
    expect([readdirSync(folder), openFiles()]).toEqual([['output-of-the-user.log'], []])
  })

  it('F2: are not written after the disposal', async () => {
    const { manager, write, pathOf, read } = setUp({ store: memoryStore() })
    write('a', 'one')
    const path = pathOf('a')
    await manager.dispose()
    manager.appendOutput('a', 'two')
    expect(readFileSync(path, 'utf8')).toBe('one')
    expect([read('a'), openFiles()]).toEqual(['one', []])
  })

  it('F2: of a restored record are removed only if this manager has made them', async () => {
    const victim = join(root, 'victim')
    writeFileSync(victim, 'kept')
    const record = { id: 'a', subagentName: 's', goalPrompt: 'g', status: 'failed', launchedAt: 1, error: 'e' } as const
    const manager = AsyncTaskManager.restore([{ ...record, outputFile: victim }], { outputFiles: { folder } })
    await manager.dispose()
    expect(readFileSync(victim, 'utf8')).toBe('kept')
  })

  it('F2: are not written where a link leads', () => {
    const { manager, onError, write } = setUp()
    write('a', 'one')
    const path = manager.getTask('a')!.outputFile!
    manager.completeTask('a', {})
    const next = path.replace(/[0-9a-f]{32}/, 'f'.repeat(32))
    symlinkSync(join(root, 'target'), next)
    vi.spyOn(fs, 'openSync').mockImplementationOnce((_path, ...rest) => fs.openSync(next, ...rest))
    write('b', 'two')
    vi.restoreAllMocks()
    expect(existsSync(join(root, 'target'))).toBe(false)
    expect(onError).toHaveBeenCalledTimes(1)
  })
})

describe('with a store, the files of output', () => {
  const onStore = (options: AsyncTaskManagerOptions = {}) =>
    setUp({ store: sqliteStore(join(root, 'tasks.db')), ...options })

  it('F2: outlive the process with their records, and go on', async () => {
    const findRunner = () => ({
      retry: { attempts: 2, on: ['interrupted'] } as const,
      run: (_input: unknown, context: RunContext) => {
        context.append('second')
        return Promise.resolve({})
      },
    })
    const first = onStore()
    const { retry } = findRunner()
    const run: RunFunction = (_input, context) => {
      const { signal } = context
      context.append('first ')
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    }
    first.manager.launch({ id: 'a', subagentName: 'writer', goalPrompt: 'write' }, { run, retry })
    await vi.waitFor(() => expect(first.read('a')).toBe('first '))
    first.write('b', 'of b')
    const [path, interrupted] = [first.pathOf('a'), first.pathOf('b')]
    await first.manager.dispose()
    expect([path, interrupted].map((each) => readFileSync(each, 'utf8'))).toEqual(['first ', 'of b'])

    const next = onStore({ findRunner })
    await next.manager.recovered
    expect(next.manager.getTask('b')).toMatchObject({ status: 'failed', outputFile: interrupted })
    await next.manager.waitFor(['a'])
    expect([next.pathOf('a'), next.read('a')]).toEqual([path, 'first second'])
  })

  it('F2: of records that no longer exist are removed at the start, and only those of this store', async () => {
    const { manager, write, pathOf } = onStore()
    write('a', 'one')
    const path = pathOf('a')
    const other = setUp()
    other.write('a', 'other')
    await manager.dispose()
    const stale = path.replace(/[0-9a-f]{32}/, 'f'.repeat(32))
    writeFileSync(stale, 'stale')
    const kept = ['notes.txt', 'output-x.log', `output-${'0'.repeat(16)}-${'f'.repeat(32)}-1-1.log`]
    for (const name of kept) writeFileSync(join(folder, name), 'kept')

    const next = onStore()
    await next.manager.recovered
    const present = [...kept.map((name) => join(folder, name)), path, other.pathOf('a')]
    expect([existsSync(stale), ...present.map((each) => existsSync(each))]).toEqual([false, ...present.map(() => true)])
  })

  it('F2: are removed with records that go to the history, which does not name them', async () => {
    const { manager, write, pathOf } = onStore({ maxAsyncTasks: 1 })
    const paths = ['a', 'b', 'c'].map((id) => {
      write(id, id)
      manager.completeTask(id, {})
      return pathOf(id)
    })
    await manager.stored()
    for (const id of ['a', 'b', 'c']) manager.markNotified(id)
    await manager.stored()
    expect(paths.map((path) => existsSync(path))).toEqual([false, true, true])
    const { tasks } = await manager.history({})
    expect(tasks.map(({ id, outputFile }) => [id, outputFile === undefined])).toEqual([
      ['c', false],
      ['b', false],
      ['a', true],
    ])
  })

  it('F2: of a program that is followed begin anew, because its output is read again', async () => {
    const file = join(root, 'tasks.db')
    const go = join(root, 'go')
    const { ended } = await leftProgram(file, `echo one; until [ -e ${go} ]; do sleep 0.05; done; echo two`)
    const findRunner = () => processRunner({ command: 'true', survivesHost: true })
    const first = onStore({ findRunner, clock: systemClock })
    await vi.waitFor(() => expect(first.read('a')).toBe('one\n'), WAIT)
    const path = first.pathOf('a')
    await first.manager.dispose()
    writeFileSync(go, '')
    await ended
    const next = onStore({ findRunner, clock: systemClock })
    await next.manager.recovered
    await next.manager.waitFor(['a'])
    expect([next.pathOf('a'), next.read('a')]).toEqual([path, 'one\ntwo\n'])
  })
})
