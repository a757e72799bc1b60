/** What the next process has of each task: its place, its policy, its pool, its grace, and what its last run had. */
import fs, { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { launchedRun } from '../../../src/async-tasks/recovery/stored-run.js'
import { launches } from '../../../src/async-tasks/run-plan.js'
import { toFlatRunner } from '../../../src/engine/definition.js'
import { AsyncTaskManager, type AsyncTaskManagerOptions, type Runner } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import type { RetryPolicy } from '../../../src/protocol/retry-policy.js'

const interrupted: RetryPolicy = { attempts: 3, on: ['interrupted'] }

/** The next process on what a store holds. */
async function nextProcess(from: MemoryStore, runner: Runner | undefined, options: AsyncTaskManagerOptions = {}) {
  const store = from.copy()
  const clock = createManualClock(9_000)
  const manager = new AsyncTaskManager({ store, clock, graceMs: 0, findRunner: () => runner, ...options })
  onTestFinished(() => manager.dispose())
  const recovery = await manager.recovered
  await tick()
  return { manager, store, clock, recovery, row: (id: string) => store.contents().tasks.find((row) => row.id === id) }
}

describe('a task whose run is repeated after a crash', () => {
  it('K7: has all that its launch has said in its row, and nothing of what its last run has said', async () => {
    const store = memoryStore()
    const { launch, runs, pass } = limitedTasks({ store, whenFull: 'queue' })
    await launch('before')
    const input = { priority: 2, retry: interrupted, graceMs: 77, timeoutMs: 500, context: { for: 'a' } }
    await launch('a', input)
    await pass(300)
    await runs[0]?.end()
    const [, run] = runs
    run?.context.report(0.5)
    void run?.context.ask('Which?').catch(() => undefined)
    run?.context.spend({ tokens: 3 })
    await tick()
    expect(store.contents().tasks.find(({ id }) => id === 'a')?.record).toHaveProperty('progress')
    const { row, recovery, manager } = await nextProcess(store, { run: untilAborted })
    expect(recovery.retried).toEqual(['a'])
    const { graceMs, context, retry, priority } = input
    const params = { context }
    expect(row('a')).toMatchObject({ attempt: 2, deadlineAt: 9_500 })
    expect(row('a')?.run).toEqual({ graceMs, params, retry, priority, place: 2 })
    expect(row('a')?.record).toMatchObject({
      attempt: 2,
      startedAt: 9_000,
      attempts: [{ number: 1, startedAt: 1_300 }],
      spent: { tokens: 3 },
    })
    for (const field of ['progress', 'questions']) expect(manager.getTask('a')).not.toHaveProperty(field)
    const entry = manager.registry.history.get('a')
    expect(entry && launches.get(entry)).toMatchObject({
      input: { subagentName: 'agent', goalPrompt: 'goal of a', graceMs: 77, timeoutMs: 500 },
      params,
    })
  })

  it('K7: takes a slot of its own kind again', async () => {
    const store = memoryStore()
    const { launch, runs, runner } = limitedTasks({ store })
    await launch('p', { retry: interrupted })
    runs[0]?.context.launch({ id: 'c', subagentName: 'agent', goalPrompt: 'g', retry: interrupted }, runner)
    await tick()
    const { manager, row, recovery } = await nextProcess(store, { run: untilAborted }, { maxAsyncTasks: 1 })
    expect(recovery.retried).toEqual(['p', 'c'])
    expect(row('c')?.run).toMatchObject({ pool: 'child' })
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 1, running: 2 })
  })

  it.each<[string, RetryPolicy | undefined, RetryPolicy | undefined, boolean]>([
    ['of its launch', interrupted, undefined, true],
    ['of its launch, before that of its subagent', interrupted, { ...interrupted, attempts: 1 }, true],
    [
      'of its launch, before that of its subagent, also where it repeats nothing',
      { ...interrupted, attempts: 1 },
      interrupted,
      false,
    ],
    ['of its subagent', undefined, interrupted, true],
    ['that has no attempt left', undefined, { ...interrupted, attempts: 1 }, false],
    ['that repeats something else', undefined, { ...interrupted, on: ['timeout'] }, false],
  ])('K7: is repeated by the policy %s', async (_what, ofLaunch, ofSubagent, isRepeated) => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store })
    await launch('a', ofLaunch && { retry: ofLaunch })
    const runner: Runner = { run: untilAborted, ...(ofSubagent && { retry: ofSubagent }) }
    const { recovery } = await nextProcess(store, runner)
    expect(recovery).toMatchObject({ retried: isRepeated ? ['a'] : [], interrupted: isRepeated ? [] : ['a'] })
  })
})

describe('tasks that wait', () => {
  it('F8: wait in their order again: by priority, and then by registration, also when one was repeated', async () => {
    const store = memoryStore()
    const { launch, runs, manager } = limitedTasks({ store, whenFull: 'queue' })
    await launch('a', { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } } })
    await launch('b')
    await launch('c', { priority: 1 })
    await launch('d', { priority: -1 })
    manager.setMaxAsyncTasks(0)
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await launch('e')
    const orderOf = (of: AsyncTaskManager) =>
      ['a', 'b', 'c', 'd', 'e'].sort((x, y) => (of.queuePosition(x) ?? 0) - (of.queuePosition(y) ?? 0))
    expect(orderOf(manager)).toEqual(['c', 'a', 'b', 'e', 'd'])
    await tick()
    const next = await nextProcess(store, { run: untilAborted }, { maxAsyncTasks: 0, whenFull: 'queue' })
    expect(orderOf(next.manager)).toEqual(['c', 'a', 'b', 'e', 'd'])
    next.manager.setMaxAsyncTasks(2)
    await tick()
    expect(next.manager.getRunningTasks().map(({ id }) => id)).toEqual(['a', 'c'])
    const another = await nextProcess(store, { run: untilAborted }, { maxAsyncTasks: 2, whenFull: 'queue' })
    expect(another.manager.getRunningTasks().map(({ id }) => id)).toEqual(['a', 'c'])
    const last = await nextProcess(next.store, { run: untilAborted }, { maxAsyncTasks: 0, whenFull: 'queue' })
    expect(['b', 'e', 'd'].map((id) => last.manager.queuePosition(id))).toEqual([1, 2, 3])
  })

  it('F8: keep the order of their launches, however long each reading of the clocks takes', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 0, whenFull: 'queue' })
    const ids = Array.from({ length: 40 }, (_, index) => `t${index}`)
    for (const id of ids) await launch(id)
    await tick()
    const clock = createManualClock(9_000)
    let read = 0
    // The system clock counts whole milliseconds, and the monotonic clock parts of them.
    const passed = (): number => (read += 0.37)
    const timely = { ...clock, now: () => Math.floor(9_000 + passed()), monotonic: () => 500 + passed() }
    const options = { maxAsyncTasks: 0, whenFull: 'queue', clock: timely } as const
    const { manager } = await nextProcess(store, { run: untilAborted }, options)
    expect(ids.map((id) => manager.queuePosition(id))).toEqual(ids.map((_, index) => index + 1))
  })
})

describe('a task that waits, of a run that has died', () => {
  it('F5, K4: belongs to the owner of that task, also on the disk', async () => {
    const store = memoryStore()
    const { launch, runs, runner } = limitedTasks({ store, maxChildTasks: 1, whenFull: 'queue' })
    await launch('p', { owner: 'boss' })
    for (const id of ['c1', 'c2']) runs[0]?.context.launch({ id, subagentName: 'agent', goalPrompt: 'g' }, runner)
    await tick()
    const next = await nextProcess(store, { run: untilAborted }, { maxChildTasks: 0, whenFull: 'queue' })
    expect(next.recovery).toMatchObject({ queued: ['c2'], interrupted: ['p', 'c1'] })
    expect(next.manager.getTask('c2')).toMatchObject({ status: 'queued', owner: 'boss' })
    expect(next.row('c2')).toMatchObject({ owner: 'boss', record: { owner: 'boss' } })
  })
})

describe('a run that is followed', () => {
  it('K6: has the grace of its launch, and is not repeated by another policy', async () => {
    const store = memoryStore()
    const first = limitedTasks({ store })
    await first.launch('a', { timeoutMs: 500, graceMs: 77 }, { run: untilAborted, survivesHost: true })
    const surviving: Runner = { run: () => new Promise(() => undefined), survivesHost: true }
    const clock = createManualClock(1_200)
    const { manager, recovery } = await nextProcess(store, surviving, { clock })
    expect(recovery.adopted).toEqual(['a'])
    clock.advance(300)
    await tick()
    clock.advance(76)
    await tick()
    expect(manager.getTask('a')?.status).toBe('running')
    clock.advance(1)
    await tick()
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
  })
})

describe('the files of a run that is repeated', () => {
  it('F9, K6: go with that run, and those of the next one stay', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'agent-tasks-recovery-'))
    const remove = vi.spyOn(fs, 'rm')
    onTestFinished(() => {
      remove.mockRestore()
      fs.rmSync(directory, { recursive: true, force: true })
    })
    const { launch, runs, pass } = limitedTasks({ store: Object.assign(memoryStore(), { directory }) })
    await launch('a', { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 10, jitter: false } } })
    const folders = [runs[0]?.context.durability?.folder]
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await pass(10)
    expect(runs.map(({ context }) => context.durability?.startedAt)).toEqual([1_000, 1_010])
    folders.push(runs[1]?.context.durability?.folder)
    expect(new Set(folders).size).toBe(2)
    const removed = () => remove.mock.calls.map(([path]) => path)
    expect(removed()).toEqual([folders[0]])
    await runs[1]?.end()
    await tick()
    expect(removed()).toEqual(folders)
  })
})

describe('a result in a message of which the host knows that it has not arrived', () => {
  it('K4: is owed as if it had never been in it', async () => {
    const store = memoryStore()
    const { manager } = limitedTasks({ store })
    manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: 'go' })
    manager.completeTask('a', {})
    manager.lease()?.acknowledge()
    await tick()
    expect(store.contents().tasks[0]?.record).toHaveProperty('notifiedAt')
    const next = await nextProcess(store, undefined, { wasDelivered: () => false })
    expect(next.recovery.uncertain).toEqual([])
    const task = next.manager.getTask('a')
    expect(task).toMatchObject({ delivery: 'owed', status: 'completed' })
    for (const field of ['notifiedAt', 'isRepeat']) expect(task).not.toHaveProperty(field)
    expect(next.store.contents().deliveries).toEqual([])
  })
})

describe('what is stored of a run', () => {
  const runner = (more: object = {}) => toFlatRunner({ run: untilAborted, ...more }, 'runner')

  it('K7: is its further input up to a mebibyte of JSON', () => {
    const exact = { x: 'y'.repeat(1024 * 1024 - '{"x":""}'.length) }
    expect(launchedRun(runner(), exact)['params']).toBe(exact)
    expect(launchedRun(runner(), { x: `${exact.x}y` })['params']).toBeNull()
    // An umlaut takes two bytes.
    expect(launchedRun(runner(), { x: 'ü'.repeat(600_000) })['params']).toBeNull()
    expect(launchedRun(runner())).toEqual({ params: {} })
  })

  it('K6: is nothing where only this process can run it, and a key of its own where its program survives', () => {
    expect(launchedRun(runner({ isBound: true }), { x: 1 })).toEqual({})
    const [first, second] = [launchedRun(runner({ survivesHost: true })), launchedRun(runner({ survivesHost: true }))]
    expect(first['key']).toMatch(/^[0-9a-f-]{36}$/)
    expect(first['key']).not.toBe(second['key'])
  })
})

it('K4: a result that its host marks as delivered while it is asked for another message is not uncertain', async () => {
  const store = memoryStore()
  const { manager: first } = limitedTasks({ store })
  const messages = new Map<string, string>()
  for (const id of ['a', 'b', 'c']) {
    first.registerTask({ id, subagentName: 'agent', goalPrompt: 'go' })
    first.completeTask(id, {})
    messages.set(first.lease()?.deliveryId ?? '', id)
  }
  await first.stored()
  const answers = new Map<string, (wasDelivered: undefined) => void>()
  const manager = new AsyncTaskManager({
    store: store.copy(),
    clock: createManualClock(9_000),
    wasDelivered: (id) => new Promise((resolve) => answers.set(messages.get(id) ?? '', resolve)),
  })
  await tick()
  manager.markNotified('a')
  answers.get('b')?.(undefined)
  await tick()
  expect(manager.getTask('b')).toMatchObject({ delivery: 'owed', isRepeat: true })
  manager.markNotified('b')
  for (const id of ['a', 'c']) answers.get(id)?.(undefined)
  expect((await manager.recovered).uncertain).toEqual(['c'])
  expect(['a', 'b', 'c'].map((id) => manager.getTask(id)?.delivery)).toEqual(['delivered', 'delivered', 'owed'])
})
