/** Survivors whose files, hosts or ends are not as they should be: real programs, in the process of the test. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { folderName } from '../../../src/features/output/run-files.js'
import { systemClock } from '../../../src/system/clock.js'
import { isLeft, reapProgram, toStartedProgram, type StartedProgram } from '../../../src/engine/reap.js'
import { AsyncTaskManager, processRunner, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { followProgram, startSurviving } from '../../../src/runners/surviving-program.js'
import type { RunDurability } from '../../../src/engine/runner.js'
import type { ProgramEnd } from '../../../src/runners/supervision.js'
import { readStore, sqliteStore, StoreError } from '../../../src/store/index.js'
import { storedIn } from '../../support/left-program.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-lost-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5))
}

function managerOn(options: AsyncTaskManagerOptions = {}): AsyncTaskManager {
  const manager = new AsyncTaskManager({ store: sqliteStore(file), onError: () => undefined, ...options })
  onTestFinished(() => manager.dispose())
  return manager
}

/** Ignores every signal that it can. */
const STUBBORN = "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"

async function startIn(runFolder: string, script: string) {
  mkdirSync(runFolder, { recursive: true })
  const { child, program, release } = startSurviving(
    runFolder,
    { command: '/bin/sh', args: ['-c', script], cwd: undefined, env: process.env },
    1000,
  )
  if (program === undefined) throw new Error('it did not start')
  onTestFinished(() => void reapProgram(program))
  const hasEnded = new Promise((resolve) => child.once('exit', resolve))
  await release(storedIn(runFolder))
  await until(() => existsSync(join(runFolder, 'stdout')))
  return { program, hasEnded }
}

const follow = (runFolder: string, program: StartedProgram): Promise<ProgramEnd> =>
  followProgram(runFolder, {
    program,
    signal: new AbortController().signal,
    endDetached: false,
    killSignal: 'SIGTERM',
    graceMs: 0,
    clock: systemClock,
    maxOutputBytes: 1000,
    onStdout: () => undefined,
    onStderr: () => undefined,
    onGap: () => undefined,
    onLost: () => undefined,
  })

/** The program of the only task in the store. */
const storedProgram = (): StartedProgram => {
  const program = toStartedProgram(readStore(file).tasks[0]?.run?.['program'])
  if (program === undefined) throw new Error('it was not stored')
  return program
}

describe('the folder of a run', () => {
  it('is that of no other task, however long and odd their ids are', () => {
    const ids = [
      '資'.repeat(40) + '1',
      '資'.repeat(40) + '2',
      'a'.repeat(300),
      'a'.repeat(301),
      '\ud800',
      '\ud801',
      '../b',
    ]
    const names = ids.map((id) => folderName({ id, launchedAt: 1 }))
    expect(new Set(names).size).toBe(ids.length)
    expect(names.every((name) => /^[\w-]{1,80}$/.test(name))).toBe(true)
  })

  it('is not used when it exists already: another program is in it', async () => {
    const runner = processRunner({ command: 'echo', args: ['mine'], survivesHost: true })
    const clock = { ...systemClock, now: () => 7 }
    mkdirSync(join(`${file}-runs`, folderName({ id: 'a', launchedAt: 7 })), { recursive: true })
    const manager = managerOn({ clock })
    manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, runner)
    const { settled } = await manager.waitFor(['a'])
    expect(settled[0]).toMatchObject({ status: 'failed' })
    expect(settled[0]?.error).toMatch(/exists already/)
  })
})

describe('a survivor that had not started when its host died', () => {
  const row = { id: 'a', owner: 'main', status: 'running', delivery: 'none', seq: 1, launchedAt: 1 } as const
  const runFolder = (attempt: number) => join(`${file}-runs`, folderName({ id: 'a', launchedAt: 1, attempt }))

  async function nextHost(attempt: number, program?: StartedProgram) {
    const store = sqliteStore(file)
    store.open()
    const record = { ...row, attempt, subagentName: 'program', goalPrompt: 'goal' }
    await store.write([{ table: 'tasks', put: { ...row, attempt, record, run: { params: {}, program } } }])
    store.close()
    mkdirSync(runFolder(attempt), { recursive: true })
    return managerOn({ findRunner: () => processRunner({ command: 'echo', args: ['mine'], survivesHost: true }) })
  }

  it('K8: is started by the next host, as its next attempt', async () => {
    const manager = await nextHost(1)
    expect(await manager.recovered).toMatchObject({ retried: ['a'] })
    const { settled } = await manager.waitFor(['a'])
    expect(settled).toMatchObject([{ status: 'completed', attempt: 2, output: { final_message: 'mine' } }])
  })

  it('K8: is started by the next host also if it was stored and still waited to start', async () => {
    mkdirSync(runFolder(1), { recursive: true })
    const waiting = startSurviving(
      runFolder(1),
      { command: 'echo', args: ['no'], cwd: undefined, env: process.env },
      99,
    )
    const hasEnded = new Promise((resolve) => waiting.child.once('exit', resolve))
    const died = { saveProgram: () => Promise.reject(new StoreError('STORE_LOST', 'its host has died')) }
    await waiting.release(died as unknown as RunDurability).catch(() => undefined)
    await hasEnded
    const manager = await nextHost(1, waiting.program)
    expect(await manager.recovered).toMatchObject({ retried: ['a'] })
    expect((await manager.waitFor(['a'])).settled).toMatchObject([{ output: { final_message: 'mine' } }])
  })

  it('K8: is not started again after five attempts, because each may have ended its host', async () => {
    const manager = await nextHost(5)
    expect(await manager.recovered).toMatchObject({ interrupted: ['a'] })
    expect(existsSync(runFolder(5))).toBe(false)
  })
})

it('a task with an id that is no Unicode text is run and stored', async () => {
  const manager = managerOn()
  const runner = processRunner({ command: 'echo', args: ['mine'], survivesHost: true })
  manager.launch({ id: '\ud800x', subagentName: 'program', goalPrompt: 'goal' }, runner)
  expect((await manager.waitFor(['\ud800x'])).settled).toMatchObject([{ status: 'completed' }])
  await manager.dispose()
  expect(managerOn().getTask('\ud800x')).toMatchObject({ status: 'completed' })
})

describe('a script that has ended', () => {
  const runFolder = () => join(folder, 'run')

  it.each([
    ['whose exit code was not written whole', '', false],
    ['whose exit code was not written whole, although its output is complete', '', true],
    ['whose exit code is no number', 'x\n', true],
  ])('%s has not succeeded', async (_what, exit, isDone) => {
    const { program, hasEnded } = await startIn(runFolder(), 'exit 0')
    await hasEnded
    writeFileSync(join(runFolder(), 'exit'), exit)
    if (!isDone) rmSync(join(runFolder(), 'done'))
    expect(await follow(runFolder(), program)).toMatchObject({ exitCode: null })
  })

  it('has written its exit code when there is room again', async () => {
    mkdirSync(join(runFolder(), 'exit.new'), { recursive: true })
    const { program } = await startIn(runFolder(), 'exit 3')
    // The program has ended, and its script has tried.
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(isLeft(program)).toBe(true)
    rmSync(join(runFolder(), 'exit.new'), { recursive: true })
    expect(await follow(runFolder(), program)).toMatchObject({ exitCode: 3 })
  })

  it.each([
    [143, { exitCode: null, signal: 'SIGTERM' }],
    // 400, 401 and 403 modulo 256.
    [144, { exitCode: 144, signal: null }],
    [145, { exitCode: 145, signal: null }],
    [147, { exitCode: 147, signal: null }],
    [200, { exitCode: 200, signal: null }],
  ])('that exits with %i has ended with %j', async (code, end) => {
    const { program, hasEnded } = await startIn(runFolder(), `exit ${code}`)
    await hasEnded
    expect(await follow(runFolder(), program)).toMatchObject(end)
  })

  it('has the exit code that it wrote, also when its output was not completed', async () => {
    const { program, hasEnded } = await startIn(runFolder(), 'exit 3')
    await hasEnded
    rmSync(join(runFolder(), 'done'))
    expect(await follow(runFolder(), program)).toMatchObject({ exitCode: 3, signal: null })
  })
})

it('K8: a survivor whose files were removed is ended, and its task fails', async () => {
  const manager = managerOn()
  manager.launch(
    { id: 'a', subagentName: 'program', goalPrompt: 'goal' },
    processRunner({ command: 'sh', args: ['-c', STUBBORN], survivesHost: true }),
  )
  const runs = `${file}-runs`
  await until(() => existsSync(runs) && readdirSync(runs).length === 1)
  const program = storedProgram()
  await until(() => manager.readOutput('a')?.text.includes('ready') === true)
  // The program may write a file meanwhile.
  rmSync(runs, { recursive: true, maxRetries: 10 })
  const { settled } = await manager.waitFor(['a'])
  expect(settled).toMatchObject([{ status: 'failed' }])
  await until(() => !isLeft(program))
})

it('K8: a survivor that was being stopped when its host died is ended by the next host', async () => {
  const launchedAt = 5
  const { program } = await startIn(join(`${file}-runs`, folderName({ id: 'a', launchedAt })), STUBBORN)
  const store = sqliteStore(file)
  store.open()
  const row = {
    id: 'a',
    owner: 'main',
    status: 'cancelled',
    delivery: 'none',
    seq: 1,
    launchedAt,
    completedAt: 6,
  } as const
  await store.write([
    {
      table: 'tasks',
      put: { ...row, attempt: 1, record: { ...row, subagentName: 'program', goalPrompt: 'goal' }, run: { program } },
    },
  ])
  store.close()
  const manager = managerOn()
  await manager.recovered
  await until(() => !isLeft(program))
  expect(readdirSync(`${file}-runs`)).toEqual([])
})

it('K8: a survivor that is being stopped is killed when its host exits', async () => {
  const manager = managerOn({ graceMs: 60_000 })
  const before = new Set(process.listeners('exit'))
  manager.launch(
    { id: 'a', subagentName: 'program', goalPrompt: 'goal' },
    processRunner({ command: 'sh', args: ['-c', STUBBORN], survivesHost: true, graceMs: 60_000 }),
  )
  const runs = `${file}-runs`
  await until(() => existsSync(runs) && readdirSync(runs).length === 1)
  const program = storedProgram()
  // Before it has set its traps, SIGTERM ends it.
  await until(() => manager.readOutput('a')?.text.includes('ready') === true)
  const added = () => process.listeners('exit').filter((listener) => !before.has(listener))
  expect(added()).toEqual([])
  manager.cancelTask('a')
  await until(() => added().length === 1)
  added()[0]?.(0)
  await until(() => !isLeft(program))
})
