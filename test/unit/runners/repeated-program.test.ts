/** Programs of tasks that are run again after their host has died: real programs, in the process of the test. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import {
  AsyncTaskManager,
  processRunner,
  type AsyncTaskManagerOptions,
  type RunnerDefinition,
} from '../../../src/index.js'
import { folderName } from '../../../src/features/output/run-files.js'
import { runWhenGone } from '../../../src/async-tasks/recovery/interrupted-runs.js'
import { canFollow, lastOutput } from '../../../src/engine/program-folder.js'
import { identityOf } from '../../../src/system/process-identity.js'
import { isLeft, reapProgram, type StartedProgram } from '../../../src/engine/reap.js'
import { RUN_TOKEN } from '../../../src/engine/run-token.js'
import { startSurviving } from '../../../src/runners/surviving-program.js'
import { sqliteStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { createRunContext, runInput } from '../../support/run-context.js'
import { hasProcesses, storedIn } from '../../support/left-program.js'
import type { StoredJson } from '../../../src/store/store.js'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-repeated-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** What a host left that died while it ran a task. */
async function storeRunning(run: StoredJson): Promise<void> {
  const store = sqliteStore(file)
  store.open()
  const record = { id: 'a', subagentName: 'program', goalPrompt: 'goal', owner: 'main', status: 'running', seq: 1 }
  const row = {
    id: 'a',
    owner: 'main',
    status: 'running',
    delivery: 'none',
    attempt: 1,
    seq: 1,
    launchedAt: 1,
  } as const
  await store.write([{ table: 'tasks', put: { ...row, record: { ...record, delivery: 'none', launchedAt: 1 }, run } }])
  store.close()
}

function nextHost(options: AsyncTaskManagerOptions): AsyncTaskManager {
  const manager = new AsyncTaskManager({ store: sqliteStore(file), onError: () => undefined, ...options })
  onTestFinished(() => manager.dispose())
  return manager
}

const repeated = (definition: RunnerDefinition): AsyncTaskManagerOptions => ({
  findRunner: () => ({ ...definition, retry: { attempts: 2, on: ['interrupted'] } }),
})

/** A program that ignores every signal that it can. */
async function startStubborn(): Promise<StartedProgram> {
  const token = globalThis.crypto.randomUUID()
  const child = spawn('sh', ['-c', "trap '' TERM HUP INT; echo ready; sleep 60 & sleep 60"], {
    env: { ...process.env, [RUN_TOKEN]: token },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const program = { identity: identityOf(child.pid ?? 0)!, token }
  onTestFinished(() => void reapProgram(program))
  return program
}

/** A program in the folder of the task's first run; its script, which leads it, has been killed. */
async function startLeaderless(): Promise<{ runFolder: string; program: StartedProgram }> {
  const runFolder = join(`${file}-runs`, folderName({ id: 'a', launchedAt: 1 }))
  mkdirSync(runFolder, { recursive: true })
  const program = { command: '/bin/sh', args: ['-c', 'echo begin; sleep 60'], cwd: undefined, env: process.env }
  const { child, program: started, release } = startSurviving(runFolder, program, 1000)
  if (started === undefined) throw new Error('it did not start')
  onTestFinished(() => void reapProgram(started))
  await release(storedIn(runFolder))
  const exited = new Promise((resolve) => child.once('exit', resolve))
  await until(() => existsSync(join(runFolder, 'stdout')) && lastOutput(runFolder, 100) === 'begin')
  process.kill(started.identity.pid, 'SIGKILL')
  await exited
  return { runFolder, program: started }
}

it('K7: a task is run again when the program of its last run has ended', async () => {
  const program = await startStubborn()
  await storeRunning({ graceMs: 0, params: {}, program })
  let wasLeft: boolean | undefined
  const run = () => ({ wasLeft: (wasLeft = hasProcesses(program)) })
  const manager = nextHost(repeated({ run }))
  expect((await manager.recovered).retried).toEqual(['a'])
  expect((await manager.waitFor(['a'])).settled).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect(wasLeft).toBe(false)
})

it('K7, K13: a task is reported as interrupted when its program has ended, and is running until then', async () => {
  const program = await startStubborn()
  await storeRunning({ graceMs: 0, params: {}, program: { ...program, graceMs: 300 } })
  const manager = nextHost({ findRunner: () => ({ run: () => ({}) }) })
  const leftAtEnd: boolean[] = []
  manager.settled$.subscribe(() => leftAtEnd.push(hasProcesses(program)))
  expect(await manager.recovered).toMatchObject({ retried: [], interrupted: ['a'] })
  expect(manager.getTask('a')).toMatchObject({ status: 'running' })
  expect(manager.getPendingNotifications()).toEqual([])
  const { settled } = await manager.waitFor(['a'])
  expect(settled).toMatchObject([{ status: 'failed', errorCode: 'INTERRUPTED' }])
  expect(settled[0]?.error).toMatch(/Launch it again/)
  expect(settled[0]?.attempt ?? 1).toBe(1)
  expect(leftAtEnd).toEqual([false])
})

it('K7: a task whose program is being ended can be cancelled, and is not run again', async () => {
  const program = await startStubborn()
  await storeRunning({ graceMs: 0, params: {}, program: { ...program, graceMs: 300 } })
  const manager = nextHost({ findRunner: () => ({ run: () => ({}) }) })
  await manager.recovered
  expect(manager.cancelTask('a')).toBe(true)
  expect(manager.getTask('a')).toMatchObject({ status: 'cancelled' })
  await until(() => !isLeft(program))
  expect(manager.getTask('a')).toMatchObject({ status: 'cancelled' })
})

it('K7: a run waits for the program of the last one, not for ever, and not when it is aborted', async () => {
  const program = await startStubborn()
  const clock = createManualClock()
  const starts: string[] = []
  const { run } = runWhenGone({ run: ({ id }) => ({ started: starts.push(id) }) }, program, clock)
  const step = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50)
      await Promise.resolve()
    }
  }
  const { controller, ...context } = createRunContext()
  const endless = run(runInput(), createRunContext())
  const aborted = run(runInput(), context)
  const patient = run({ ...runInput(), id: 'patient' }, createRunContext())
  controller.abort(new Error('cancelled'))
  await step(50)
  await expect(aborted).rejects.toThrow('cancelled')
  await step(10_000)
  await expect(endless).rejects.toThrow(`cannot be ended (process group ${program.identity.pid})`)
  await expect(patient).rejects.toThrow('cannot be ended')
  const later = run({ ...runInput(), id: 'later' }, createRunContext())
  expect(starts).toEqual([])
  reapProgram(program)
  await until(() => !isLeft(program))
  await step(50)
  await later
  expect(starts).toEqual(['later'])
})

it('K7: a program whose script was killed is ended, and its task is run again in a folder of its own', async () => {
  const { runFolder, program } = await startLeaderless()
  expect(isLeft(program)).toBe(true)
  expect(canFollow(runFolder, program)).toBe(false)
  await storeRunning({ graceMs: 0, params: {}, program })
  const run = processRunner({ command: 'sh', args: ['-c', 'echo again'], survivesHost: true })
  const manager = nextHost(repeated({ run }))
  expect(await manager.recovered).toMatchObject({ adopted: [], retried: ['a'] })
  expect((await manager.waitFor(['a'])).settled).toMatchObject([{ output: { final_message: 'again' }, attempt: 2 }])
  expect(hasProcesses(program)).toBe(false)
  await until(() => readdirSync(`${file}-runs`).length === 0)
})

it('K7: a program whose script was killed fails its task with the end of its output', async () => {
  const { program, runFolder } = await startLeaderless()
  await storeRunning({ graceMs: 0, params: {}, program })
  const run = processRunner({ command: 'sh', survivesHost: true })
  const manager = nextHost({ findRunner: () => run })
  expect(await manager.recovered).toMatchObject({ adopted: [], interrupted: ['a'] })
  expect((await manager.waitFor(['a'])).settled).toMatchObject([{ status: 'failed', errorCode: 'INTERRUPTED' }])
  expect(manager.getTask('a')?.error).toMatch(/Launch it again.* The end of its output:\nbegin$/)
  await until(() => !isLeft(program))
  expect(existsSync(runFolder)).toBe(false)
})

it('K7: a program that had not started when its host died never starts, and its task is run again', async () => {
  await storeRunning({ graceMs: 0, params: {} })
  const run = processRunner({
    command: 'sh',
    args: ['-c', 'echo once >> "$0"', join(folder, 'runs')],
    survivesHost: true,
  })
  const manager = nextHost(repeated({ run }))
  expect(await manager.recovered).toMatchObject({ retried: ['a'] })
  await manager.waitFor(['a'])
  expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('once\n')
})

it('K8: members of a group are signalled by their token alone when its leader is gone', async () => {
  const { program } = await startLeaderless()
  expect(reapProgram({ ...program, token: 'of another run' })).toBe(0)
  expect(reapProgram({ ...program, token: '' })).toBe(0)
  expect(hasProcesses({ ...program, token: '' })).toBe(false)
  expect(isLeft(program)).toBe(true)
  expect(reapProgram(program)).toBeGreaterThan(0)
  await until(() => !isLeft(program))
})

it('K7: the end of an output is not cut inside a character', () => {
  expect(lastOutput(folder, 10)).toBe('')
  writeFileSync(join(folder, 'stdout'), 'begin \u{1F600}')
  expect(lastOutput(folder, 3)).toBe('\u{1F600}')
  expect(lastOutput(folder, 1)).toBe('')
  // It is the end of the whole output, however much of that is in the other file as well.
  writeFileSync(join(folder, 'stdout.tail'), 'begin \u{1F600} end')
  expect(lastOutput(folder, 6)).toBe('\u{1F600} end')
})
