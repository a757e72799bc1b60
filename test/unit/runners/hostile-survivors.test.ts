/** What a program may do to the files of survivors and stores, which it can write to: real processes and files, in the process of the test. */
import { spawn, spawnSync } from 'node:child_process'
import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { folderName } from '../../../src/features/output/run-files.js'
import { lastOutput, readExit } from '../../../src/engine/program-folder.js'
import { leads, reapProgram, signalProgram, type StartedProgram } from '../../../src/engine/reap.js'
import { RUN_TOKEN } from '../../../src/engine/run-token.js'
import { readRegular } from '../../../src/system/regular-file.js'
import { AsyncTaskManager, processRunner, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { identityOf } from '../../../src/system/process-identity.js'
import { sqliteStore, StoreError } from '../../../src/store/index.js'
import { hasProcesses } from '../../support/left-program.js'
import type { StoredJson } from '../../../src/store/store.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-hostile-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

/** A process that has nothing to do with the store, as the leader of a group. */
async function startBystander(env: NodeJS.ProcessEnv = process.env): Promise<StartedProgram['identity']> {
  const child = spawn('sh', ['-c', 'echo ready; exec sleep 60'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return identityOf(child.pid ?? 0)!
}

/** What a host left that died while it ran a task, or that had ended the task. */
async function leave(status: 'running' | 'cancelled', run: StoredJson): Promise<string> {
  const store = sqliteStore(file)
  store.open()
  const row = { id: 'a', owner: 'main', status, delivery: 'none', attempt: 1, seq: 1, launchedAt: 1 } as const
  const ended = status === 'running' ? {} : { completedAt: 2 }
  const record = { ...row, ...ended, subagentName: 'program', goalPrompt: 'goal' }
  await store.write([{ table: 'tasks', put: { ...row, ...ended, record, run } }])
  store.close()
  const runFolder = join(`${file}-runs`, folderName({ id: 'a', launchedAt: 1 }))
  mkdirSync(runFolder, { recursive: true })
  return runFolder
}

async function nextHost(options: AsyncTaskManagerOptions = {}) {
  const errors: string[] = []
  const manager = new AsyncTaskManager({
    store: sqliteStore(file),
    onError: (error: unknown) => void errors.push(String(error)),
    findRunner: () => processRunner({ command: 'true', survivesHost: true }),
    ...options,
  })
  onTestFinished(() => manager.dispose())
  return { manager, errors, recovery: await manager.recovered }
}

/** Signals that this process sends. */
function watchSignals() {
  const kill = vi.spyOn(process, 'kill')
  onTestFinished(() => kill.mockRestore())
  return kill
}

it.runIf(process.platform === 'linux')(
  'K8: what a survivor has started while it was killed gets no grace either, because nobody can follow it',
  async () => {
    const token = 'of-the-survivor'
    const identity = await startBystander({ ...process.env, [RUN_TOKEN]: token })
    await leave('running', { graceMs: 0, params: {}, program: { identity, token, graceMs: 60_000 } })
    const kill = watchSignals()
    // The signal to the group misses a process that is started in that moment.
    kill.mockImplementationOnce(() => true)
    const { manager } = await nextHost({ findRunner: () => undefined })
    await expect.poll(() => manager.getTask('a')?.status).toBe('failed')
    expect(kill.mock.calls.map(([, signal]) => signal)).not.toContain('SIGTERM')
    expect(manager.getTask('a')).toMatchObject({ errorCode: 'INTERRUPTED' })
  },
)

describe.runIf(process.platform === 'linux')('a process that is no program of the store', () => {
  it('K8: is not signalled when a file in the folder of a run names it', async () => {
    const bystander = await startBystander()
    const { pid, start, boot } = bystander
    const runFolder = await leave('running', { graceMs: 0, params: {} })
    writeFileSync(join(runFolder, 'identity'), `${pid}\n${start}\n${boot}\nanything\n`)
    const kill = watchSignals()
    expect((await nextHost({ findRunner: () => undefined })).recovery.interrupted).toEqual(['a'])
    expect(kill).not.toHaveBeenCalled()
    expect(identityOf(pid)).toEqual(bystander)
  })

  it.each(['running', 'cancelled'] as const)(
    'K8: is not signalled when the row of a %s task names it: its environment has no token of the run',
    async (status) => {
      const bystander = await startBystander()
      await leave(status, { graceMs: 0, params: {}, program: { identity: bystander, token: 'of the run' } })
      const kill = watchSignals()
      const { manager, errors } = await nextHost()
      expect(manager.getRunningTasks()).toEqual([])
      expect(kill).not.toHaveBeenCalled()
      expect(identityOf(bystander.pid)).toEqual(bystander)
      if (status === 'running') {
        expect(errors).toEqual([
          `Error: The program of task "a" was not ended: the environment of process ${bystander.pid} does not have the token of the run.`,
        ])
      }
    },
  )

  it('K8: is not signalled when it has the token of another run, or a token whose first part fits', async () => {
    const identity = await startBystander({ ...process.env, [RUN_TOKEN]: 'token-of-another' })
    for (const token of ['token', 'token-of-another-run', '']) {
      const program = { identity, token }
      expect([leads(program), signalProgram(program, 'SIGKILL'), reapProgram(program), hasProcesses(program)]).toEqual([
        ...[false, false, 0, false],
      ])
    }
    expect(leads({ identity, token: 'token-of-another' })).toBe(true)
  })

  it('K8: is not signalled as the first process of the system, or as every process, whatever its environment has', () => {
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => true)
    onTestFinished(() => kill.mockRestore())
    const { readFileSync: read } = fs
    const readFile = vi.spyOn(fs, 'readFileSync').mockImplementation((...given) => {
      if (given[0] === '/proc/1/environ') return `${RUN_TOKEN}=token`
      return read(...given)
    })
    onTestFinished(() => readFile.mockRestore())
    for (const pid of [1, 0, -1]) {
      const program = { identity: { ...(identityOf(pid) ?? identityOf(process.pid)!), pid }, token: 'token' }
      expect([leads(program), signalProgram(program, 'SIGKILL')]).toEqual([false, false])
    }
    expect(kill).not.toHaveBeenCalled()
  })
})

/** A reader that opens the FIFO is let go after some time, so that the test fails and does not hang. */
function mkfifo(path: string): void {
  expect(spawnSync('mkfifo', [path]).status).toBe(0)
  const rescue = spawn('sh', ['-c', 'sleep 5; exec 3<> "$0"; sleep 5', path], { stdio: 'ignore' })
  const exited = new Promise((resolve) => rescue.once('exit', resolve))
  onTestFinished(async () => {
    rescue.kill('SIGKILL')
    await exited
  })
}

/** Calls `run`, and expects that it has not waited for anybody. */
async function promptly<Result>(run: () => Result | Promise<Result>): Promise<Result> {
  const before = performance.now()
  const result = await run()
  expect(performance.now() - before).toBeLessThan(4000)
  return result
}

const kinds: Readonly<Record<string, (path: string) => void>> = {
  'a FIFO': mkfifo,
  'a folder': (path) => {
    mkdirSync(path)
  },
  'a link to a device without an end': (path) => symlinkSync('/dev/zero', path),
  'a link to a file': (path) => symlinkSync(join(folder, 'secret'), path),
  'a file of a terabyte': (path) => {
    writeFileSync(path, '')
    truncateSync(path, 2 ** 40)
  },
}

describe.each(Object.entries(kinds))('%s in place of a file', (kind, make) => {
  beforeEach(() => writeFileSync(join(folder, 'secret'), 'secret'))

  it('is read in part, or not at all', async () => {
    const path = join(folder, 'file')
    make(path)
    const text = await promptly(() => readRegular(path, 10))
    expect(text).toBe(kind === 'a file of a terabyte' ? '\0'.repeat(10) : undefined)
    await promptly(() => readRegular(path, 10, 'end'))
  })

  it.each(['stdout', 'stdout.tail', 'exit'])('K8: does not keep the next host from starting (%s)', async (name) => {
    const runFolder = await leave('running', { graceMs: 0, params: {} })
    make(join(runFolder, name))
    await promptly(() => [lastOutput(runFolder, 100), readExit(runFolder)])
    const { manager, recovery } = await promptly(() => nextHost({ findRunner: () => undefined }))
    expect(recovery.interrupted).toEqual(['a'])
    expect(manager.getTask('a')?.error).not.toContain('secret')
    expect(existsSync(runFolder)).toBe(false)
    expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('secret')
  })

  it.each(['stdout', 'stderr', 'stdout.tail', 'stderr.tail'])(
    'K8: does not keep a survivor from being followed to its end (%s)',
    async (name) => {
      const runFolder = await leave('running', {
        graceMs: 0,
        params: {},
        program: { identity: { ...identityOf(process.pid), start: '1' }, token: 'token' },
      })
      make(join(runFolder, name))
      writeFileSync(join(runFolder, 'exit'), '0\n')
      writeFileSync(join(runFolder, 'done'), '')
      const run = processRunner({ command: 'true', survivesHost: true, maxOutputBytes: 1000 })
      const settled = await promptly(async () => {
        const { manager, recovery } = await nextHost({ findRunner: () => run })
        expect(recovery.adopted).toEqual(['a'])
        return (await manager.waitFor(['a'])).settled
      })
      expect(settled).toMatchObject([{ status: 'completed' }])
      expect(JSON.stringify(settled)).not.toContain('secret')
    },
  )

  it.each(['-owner', '-owner.new', '-lock', '-wal', '-shm', '-new', '-runs'])(
    'K11: does not keep a host from opening the store, or from refusing it with its reason (%s)',
    async (suffix) => {
      const store = sqliteStore(file)
      store.open()
      store.close()
      rmSync(`${file}${suffix}`, { force: true, recursive: true })
      make(`${realpathSync(folder)}/tasks.db${suffix}`)
      await promptly(async () => {
        try {
          store.open()
          await store.write([
            {
              table: 'instances',
              put: { id: 'a', secretSha256: '', registration: {} },
            },
          ])
          store.close()
        } catch (error) {
          store.close()
          expect(error).toBeInstanceOf(StoreError)
          expect((error as StoreError).message).toContain(file)
        }
      })
      expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('secret')
    },
  )
})
