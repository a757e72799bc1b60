/** What is stored of a run, and what the next process makes of it: after a failed write, a time-out, a second crash, and a disposal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { TaskEntry } from '../../../machines/task-entry.js'
import {
  AsyncTaskManager,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunFunction,
  type Runner,
} from '../../../src/index.js'
import { Persistence } from '../../../src/async-tasks/recovery/persistence.js'
import { runWhenGone } from '../../../src/async-tasks/recovery/interrupted-runs.js'
import { RUN_TOKEN } from '../../../src/engine/run-token.js'
import { identityOf } from '../../../src/system/process-identity.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { createRunContext } from '../../support/run-context.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { openLease } from '../../../src/features/delivery/leases.js'

const retry = { attempts: 5, on: ['timeout', 'interrupted'], backoff: { initialMs: 0 } } as const

/** A process on what a store held when the one before it was killed. */
function afterCrash(store: MemoryStore, options: AsyncTaskManagerOptions) {
  const copy = store.copy()
  const manager = new AsyncTaskManager({ store: copy, graceMs: 0, onError: () => undefined, ...options })
  onTestFinished(() => manager.dispose())
  return { manager, store: copy }
}

it('K6: a program that could not be stored is not stored by a later write', async () => {
  const { store, memory, state } = breakableStore()
  const persistence = new Persistence({
    store,
    clock: createManualClock(),
    report: () => undefined,
    outbox: { batch: (run) => run(), mark: () => undefined, release: () => undefined },
    onConfirmed: () => undefined,
  })
  const record = { id: 'a', owner: 'main', status: 'running', delivery: 'none', seq: 1, launchedAt: 0 }
  const entry = { record, serial: 1 } as unknown as TaskEntry
  persistence.launch(entry, { attempt: 1, deadlineAt: undefined, run: { graceMs: 5 } })
  state.isBroken = true
  const program = { identity: { pid: 1, start: '1', boot: '1' }, token: 'token' } as never
  await expect(persistence.saveProgram(entry, program)).rejects.toThrow('the disk is full')
  state.isBroken = false
  persistence.noteChange(entry)
  await persistence.stored()
  expect(memory.contents().tasks[0]?.run).toEqual({ graceMs: 5 })
  await persistence.saveProgram(entry, program)
  expect(memory.contents().tasks[0]?.run).toMatchObject({ program: { token: 'token' } })
})

it('F9: a run that follows one that has timed out is repeated after a crash', async () => {
  const store = memoryStore()
  const { launch, pass, started } = limitedTasks({ store })
  await launch('a', { timeoutMs: 100 }, { retry })
  await pass(100)
  await pass(0)
  expect(started()).toHaveLength(2)
  const { manager } = afterCrash(store, {
    clock: createManualClock(1_100),
    findRunner: () => ({ run: untilAborted, retry }),
  })
  expect(await manager.recovered).toMatchObject({ retried: ['a'], interrupted: [] })
  expect(manager.getTask('a')).toMatchObject({ status: 'running', attempt: 3 })
})

it('K6: a run that is followed after the clock was set back has no more time than its limit', async () => {
  const store = memoryStore()
  const surviving: Runner = { run: untilAborted, survivesHost: true }
  const { launch } = limitedTasks({ store, clock: createManualClock(1_000_000) })
  await launch('a', { timeoutMs: 500 }, { run: surviving })
  const clock = createManualClock(0)
  const { manager } = afterCrash(store, { clock, findRunner: () => surviving })
  expect(await manager.recovered).toMatchObject({ adopted: ['a'] })
  clock.advance(499)
  await tick()
  expect(manager.getTask('a')?.status).toBe('running')
  clock.advance(1)
  await tick()
  expect(manager.getTask('a')?.status).toBe('failed')
})

it('F10: the time of a run that is followed counts once, however often its host dies', async () => {
  const store = memoryStore()
  const contexts: RunContext[] = []
  const run: RunFunction = (...args) => {
    contexts.push(args[1])
    return untilAborted(...args)
  }
  const surviving: Runner = { run, survivesHost: true }
  const { launch, clock: first } = limitedTasks({ store })
  await launch('a', { budget: { seconds: 10 } }, { run: surviving })
  const startedAt = first.now()
  const second = afterCrash(store, { clock: createManualClock(startedAt + 4_000), findRunner: () => surviving })
  await second.manager.recovered
  await tick()
  // Its row is written again.
  contexts.at(-1)?.spend({ steps: 1 })
  await tick()
  const clock = createManualClock(startedAt + 6_000)
  const third = afterCrash(second.store, { clock, findRunner: () => surviving })
  await third.manager.recovered
  await tick()
  clock.advance(3_999)
  expect(contexts.at(-1)?.wrapUp.aborted).toBe(false)
  clock.advance(1)
  expect(contexts.at(-1)?.wrapUp.aborted).toBe(true)
  third.manager.cancelTask('a')
  await tick()
  expect(third.manager.getTask('a')?.spent).toEqual({ steps: 1, seconds: 10 })
  expect(third.manager.spent()).toEqual({ steps: 1, seconds: 10 })
})

it('F9: a runner is found by its other name after a second crash, too', async () => {
  const store = memoryStore()
  const found: Runner = { run: untilAborted, foundAs: 'elsewhere' }
  const { launch } = limitedTasks({ store })
  await launch('a', {}, { run: found, retry })
  const findRunner = vi.fn(() => ({ run: found, retry }))
  const second = afterCrash(store, { findRunner })
  expect(await second.manager.recovered).toMatchObject({ retried: ['a'] })
  const third = afterCrash(second.store, { findRunner })
  expect(await third.manager.recovered).toMatchObject({ retried: ['a'] })
  expect(findRunner.mock.calls).toEqual([['elsewhere'], ['elsewhere']])
})

it('F9: a run that is cancelled while the program of the last attempt ends does not start', async () => {
  const token = 'a-run'
  const env = { ...process.env, [RUN_TOKEN]: token }
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore', env })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = identityOf(child.pid ?? 0)
  if (identity === undefined) expect.unreachable()
  const clock = createManualClock()
  const run = vi.fn<RunFunction>(() => Promise.resolve({}))
  const controller = new AbortController()
  const context = Object.assign(createRunContext(), { signal: controller.signal })
  const repeated = runWhenGone({ run }, { identity, token }, clock)
  const input = { id: 'a', goal: 'g', subagentName: 's', params: {} } as unknown as Parameters<RunFunction>[0]
  const ended = Promise.resolve(repeated.run(input, context)).catch((error: unknown) => error)
  controller.abort(new Error('cancelled'))
  child.kill('SIGKILL')
  await once(child, 'exit')
  clock.advance(50)
  expect(await ended).toEqual(new Error('cancelled'))
  expect(run).not.toHaveBeenCalled()
  expect(clock.pending).toBe(0)
})

it('K5: a host that is disposed of while it is asked leaves the message unknown for the next one', async () => {
  const store = memoryStore()
  const first = new AsyncTaskManager({ store, clock: createManualClock(), onError: () => undefined })
  onTestFinished(() => first.dispose())
  first.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'help' })
  first.completeTask('a', {})
  openLease(first.registry, { deliveryId: 'message', owner: 'main' })
  await first.stored()
  expect(store.contents().deliveries).toMatchObject([{ id: 'message', taskIds: ['a'] }])
  const asked: string[] = []
  const wasDelivered = (id: string) => {
    asked.push(id)
    return new Promise<boolean>(() => undefined)
  }
  const second = afterCrash(store, { wasDelivered })
  expect(asked).toEqual(['message'])
  await second.manager.dispose()
  expect(await second.manager.recovered).toMatchObject({ uncertain: [] })
  const third = afterCrash(second.store, { wasDelivered: (id) => asked.push(id) > 0 })
  expect(await third.manager.recovered).toMatchObject({ uncertain: [] })
  expect(asked).toEqual(['message', 'message'])
  expect(third.manager.getTask('a')?.delivery).toBe('delivered')
})

it('K6: a run that is followed has what is left of its time, and its slot until it has settled', async () => {
  const store = memoryStore()
  const ends: (() => void)[] = []
  const surviving: Runner = {
    run: () => new Promise((resolve) => ends.push(() => resolve({}))),
    survivesHost: true,
  }
  const { launch, manager: first } = limitedTasks({ store })
  await launch('a', { timeoutMs: 10_000 }, { run: surviving })
  const before = first.getTask('a')?.seq ?? NaN
  const clock = createManualClock(1_000 + 4_000)
  const { manager } = afterCrash(store, { clock, graceMs: 100, maxAsyncTasks: 1, findRunner: () => surviving })
  expect(await manager.recovered).toMatchObject({ adopted: ['a'] })
  await tick()
  const next = manager.registerTask({ id: 'b', subagentName: 'agent', goalPrompt: 'go' })
  expect(next.seq).toBeGreaterThan(before)
  manager.completeTask('b', {})
  clock.advance(5_999)
  expect(manager.actor.getSnapshot().nextDeadlineAt).toBe(11_000)
  manager.cancelTask('a')
  expect(manager.canLaunchAsync().allowed).toBe(false)
  for (const end of ends) end()
  await tick()
  expect(manager.canLaunchAsync().allowed).toBe(true)
})
