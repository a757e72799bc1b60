/** Families: tasks that runs launch, what they own, and what their end does to them. */
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  AsyncTaskManager,
  AsyncTaskReminderService,
  createAgentTasks,
  runCommandLine,
  type AsyncTaskInfo,
  type AsyncTaskManagerOptions,
  type OutputObject,
  type RunContext,
  type RunFunction,
  type Runner,
} from '../../../src/index.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { createCheckAsyncTasksTool, createTaskTool, createWaitForAsyncTasksTool } from '../../../src/tools/index.js'
import { untilAborted } from '../../support/limited-tasks.js'
import { deferred, setUpHost, settle } from '../tools/tool-host.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { FamilyError, InvalidInputError, TaskLimitError } from '../../../src/errors.js'
import { createTaskCommands, ownerOfRun } from '../../../src/parts.js'

/** A run that a test ends, and its context. */
interface OpenRun {
  readonly context: RunContext
  end(text?: string): void
  fail(error: Error): void
}

/** A host whose runs are open: each is known by the id of its task. */
function setUp(options: AsyncTaskManagerOptions = {}) {
  const runs = new Map<string, OpenRun>()
  const run: RunFunction = ({ id }, context) => {
    const { promise, resolve, reject } = deferred<OutputObject>()
    context.signal.addEventListener('abort', () => resolve({}), { once: true })
    runs.set(id, { context, end: (text = 'done') => resolve({ final_message: text }), fail: reject })
    return promise
  }
  const host = setUpHost({ graceMs: 0, findRunner: (name) => (name === 'agent' ? run : undefined), ...options })
  const { manager } = host
  const open = (id: string): OpenRun => runs.get(id) ?? missing(id)
  /** Launches a task, or a child of one, and waits until its run has begun. */
  const launch = async (id: string, parent?: string, more: object = {}): Promise<OpenRun> => {
    const input = { id, subagentName: 'agent', goalPrompt: `goal of ${id}`, ...more }
    if (parent === undefined) manager.launch(input, run)
    else open(parent).context.launch(input)
    await settle()
    return open(id)
  }
  const task = (id: string): AsyncTaskInfo => manager.getTask(id) ?? missing(id)
  const statuses = (...ids: string[]) => ids.map((id) => manager.getTask(id)?.status)
  return { ...host, run, launch, open, task, statuses }
}

function missing(id: string): never {
  throw new Error(`there is no ${id}`)
}

describe('a run that launches a task', () => {
  it('F5: is its parent and its owner', async () => {
    const { launch, task, manager } = setUp()
    await launch('p')
    await launch('c', 'p')
    await launch('g', 'c')
    expect(task('p')).not.toHaveProperty('parentId')
    expect(task('c')).toMatchObject({ parentId: 'p', depth: 1, owner: 'run:p' })
    expect(task('g')).toMatchObject({ parentId: 'c', depth: 2, owner: ownerOfRun('c') })
    expect(manager.getRunningTasks('main').map(({ id }) => id)).toEqual(['p'])
  })

  it('F5: waits for it, and receives its result', async () => {
    const { launch, manager } = setUp()
    const parent = await launch('p')
    const child = await launch('c', 'p')
    expect(parent.context.children.ids()).toEqual(['c'])
    const waiting = parent.context.children.waitFor()
    child.end('found')
    expect((await waiting).settled).toMatchObject([{ id: 'c', output: { final_message: 'found' } }])
    expect(manager.getTask('c')?.delivery).toBe('delivered')
    expect(parent.context.children.ids()).toEqual([])
  })

  it('F5: takes reminders of it, and its owner does not', async () => {
    const { launch, manager } = setUp()
    await launch('p')
    ;(await launch('c', 'p')).end('found')
    await settle()
    const reminders = new AsyncTaskReminderService(manager)
    expect(reminders.leaseReminder()).toBeUndefined()
    expect(reminders.leaseReminder({ owner: ownerOfRun('p') })?.text).toContain('found')
  })

  it('F5, F11: receives it again while it lasts, and then nobody does', async () => {
    const { launch, manager, task } = setUp()
    const parent = await launch('p')
    ;(await launch('c', 'p')).end('found')
    await settle()
    const deliver = () => {
      const { deliveryId, acknowledge } = manager.lease({ owner: ownerOfRun('p') })!
      acknowledge()
      return deliveryId
    }
    expect(manager.redeliver(deliver())).toBe(true)
    expect(task('c').delivery).toBe('owed')
    const last = deliver()
    parent.end()
    await settle()
    expect(manager.redeliver(last)).toBe(false)
    expect(task('c').delivery).toBe('delivered')
  })

  it('F5: cancels it, and none that is not its own', async () => {
    const { launch, statuses } = setUp()
    const { context } = await launch('p')
    await launch('c', 'p')
    await launch('other')
    expect(context.children.cancel('other')).toBe(false)
    expect(context.children.cancel('c', { reason: 'not needed' })).toBe(true)
    expect(statuses('p', 'c', 'other')).toEqual(['running', 'cancelled', 'running'])
  })

  it('F5: waits for none that is not its own, and takes no result of one', async () => {
    const { launch, manager, open } = setUp()
    const { context } = await launch('p')
    await launch('other', undefined, { owner: 'alice' })
    open('other').end()
    await settle()
    expect(await context.children.waitFor(['other'])).toMatchObject({ settled: [], unknown: ['other'] })
    expect(manager.getPendingNotifications('alice')).toHaveLength(1)
  })

  it('F1: a program that a run starts takes a slot of programs', async () => {
    const { launch, manager, run } = setUp({ maxCommands: 1 })
    await launch('p')
    const program = {
      parentId: 'p',
      kind: 'command',
      command: ['sleep'],
      subagentName: 'sleep',
      goalPrompt: '',
    } as const
    manager.launch(program, run)
    expect(() => manager.launch(program, run)).toThrow(TaskLimitError)
  })

  it('F5: ends its wait when the run is to stop', async () => {
    const { launch, manager } = setUp()
    const { context } = await launch('p')
    await launch('c', 'p')
    const waiting = context.children.waitFor(['c'], { signal: new AbortController().signal })
    manager.cancelTask('p', { reason: 'enough' })
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', message: 'enough' })
  })

  it('F5: ends its wait when it aborts that by itself', async () => {
    const { launch, task } = setUp()
    const { context } = await launch('p')
    const child = await launch('c', 'p')
    const own = new AbortController()
    const waiting = context.children.waitFor(['c'], { signal: own.signal })
    own.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(context.signal.aborted).toBe(false)
    child.end()
    await settle()
    expect(task('c').delivery).toBe('owed')
  })

  it('F5: ends its wait when its task has ended: what it waited for is owed to the heir', async () => {
    const { launch, manager } = setUp()
    const parent = await launch('p')
    const child = await launch('c', 'p')
    const waiting = parent.context.children.waitFor()
    manager.completeTask('p', {})
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    child.end('found')
    await settle()
    expect(manager.getTask('c')).toMatchObject({ owner: 'main', delivery: 'owed' })
    parent.end()
  })

  it('F5, F9: ends its wait when its task is run again', async () => {
    const { launch, manager } = setUp()
    const parent = await launch('p', undefined, { retry: { attempts: 2, on: ['rate-limited'] } })
    const child = await launch('c', 'p')
    const waiting = parent.context.children.waitFor()
    parent.fail(Object.assign(new Error('too fast'), { code: 'RATE_LIMITED' }))
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    child.end('found')
    await settle()
    expect(manager.getTask('c')).toMatchObject({ owner: 'main', delivery: 'owed' })
  })

  it('F5: never waits for its own slot', async () => {
    const { launch, statuses } = setUp({ maxAsyncTasks: 1 })
    const parent = await launch('p')
    const child = await launch('c', 'p')
    const waiting = parent.context.children.waitFor()
    child.end()
    await waiting
    parent.end()
    await settle()
    expect(statuses('p', 'c')).toEqual(['completed', 'completed'])
  })

  it.each([
    ['the default limits', {}, 20],
    ['one child at a time', { maxChildTasks: 1, maxFamilyDepth: 4 }, 3],
  ])('F5: ends with all of its generations that wait for one another: with %s', async (_, limits, count) => {
    const manager = new AsyncTaskManager({ clock: createManualClock(), whenFull: 'queue', ...limits })
    const depths = manager.registry.families.limits.maxDepth
    let ends = 0
    const run =
      (level: number): Runner =>
      async (_input, { launch, children }) => {
        const width = level === 0 ? count : level < depths ? 1 : 0
        for (let n = 0; n < width; n += 1) launch({ subagentName: 'agent', goalPrompt: 'g' }, run(level + 1))
        await children.waitFor()
        ends += 1
        return {}
      }
    manager.launch({ id: 'root', subagentName: 'agent', goalPrompt: 'g' }, run(0))
    for (let ticks = 0; ticks < 5000 && manager.getTask('root')?.status === 'running'; ticks += 1) {
      await Promise.resolve()
    }
    expect(manager.getTask('root')?.status).toBe('completed')
    expect(ends).toBe(1 + count * depths)
    expect(manager.registry.pools.all().map(({ inUse, queue }) => inUse + queue.size)).toEqual(
      Array.from({ length: depths + 2 }, () => 0),
    )
    await manager.dispose()
  })

  it('F5: takes one of the maxChildTasks slots for children', async () => {
    const { launch, open, manager } = setUp({ maxAsyncTasks: 2, maxChildTasks: 1 })
    await launch('p')
    const child = await launch('c', 'p')
    const again = () => open('p').context.launch({ subagentName: 'agent', goalPrompt: 'g' })
    expect(again).toThrow(TaskLimitError)
    expect(again).toThrow('Max child tasks (1) reached')
    expect(manager.canLaunchAsync().allowed).toBe(true)
    child.end()
    await settle()
    expect(again().depth).toBe(1)
  })

  it('F5: needs a runner, and a parent that runs', async () => {
    const { launch, open, manager, run } = setUp()
    const parent = await launch('p')
    const unknown = () => open('p').context.launch({ subagentName: 'nobody', goalPrompt: 'g' })
    expect(unknown).toThrow('input.subagentName: got "nobody", expected a subagent that this host can start')
    expect(open('p').context.launch({ id: 'own', subagentName: 'nobody', goalPrompt: 'g' }, run)).toMatchObject({
      parentId: 'p',
    })
    const input = { subagentName: 'agent', goalPrompt: 'g' }
    expect(() => manager.launch({ ...input, parentId: 'x' }, run)).toThrow('input.parentId: got "x"')
    expect(() => manager.launch({ ...input, parentId: 'p', owner: 'main' }, run)).toThrow(InvalidInputError)
    expect(manager.launch({ ...input, parentId: 'p' }, run).owner).toBe('run:p')
    parent.end()
    await settle()
    expect(() => parent.context.launch(input)).toThrow(FamilyError)
    expect(() => parent.context.launch(input)).toThrow(/has ended or is being stopped/)
    expect(manager.getRunningTasks('run:p')).toEqual([])
  })

  it('F5: launches nothing for a later task with the id of its own', async () => {
    const { launch, manager } = setUp({ maxAsyncTasks: 1 })
    const parent = await launch('p')
    parent.end()
    await settle()
    manager.markNotified('p')
    manager.setMaxAsyncTasks(0)
    manager.setMaxAsyncTasks(1)
    expect(manager.getTask('p')).toBeUndefined()
    await launch('p')
    expect(() => parent.context.launch({ subagentName: 'agent', goalPrompt: 'g' })).toThrow(FamilyError)
  })
})

describe('the size of a family', () => {
  it('F5: has a depth', async () => {
    const { launch } = setUp({ maxFamilyDepth: 2 })
    await launch('p')
    await launch('c', 'p')
    await launch('g', 'c')
    await expect(launch('x', 'g')).rejects.toMatchObject({ code: 'FAMILY_LIMIT', taskId: 'g' })
    await expect(launch('x', 'g')).rejects.toThrow('Task g has the maximum depth (2, maxFamilyDepth)')
  })

  it('F5: has a number, which counts what the run has not taken', async () => {
    const { launch, manager } = setUp({ maxChildrenPerTask: 2 })
    const { context } = await launch('p')
    await launch('a', 'p')
    ;(await launch('b', 'p')).end()
    await settle()
    await expect(launch('c', 'p')).rejects.toMatchObject({ code: 'FAMILY_LIMIT' })
    expect(manager.getTask('c')).toBeUndefined()
    await context.children.waitFor(['b'])
    await launch('c', 'p')
  })

  it('F5: has limits that are checked', () => {
    expect(() => setUp({ maxFamilyDepth: -1 })).toThrow('Setting maxFamilyDepth')
    expect(() => setUp({ maxChildrenPerTask: 0.5 })).toThrow('Setting maxChildrenPerTask')
    expect(() => setUp({ maxChildTasks: -2 })).toThrow('Setting maxChildTasks')
  })
})

describe('the end of a parent', () => {
  it('F5: passes what runs and what is owed to its owner, and names what runs', async () => {
    const { launch, manager, task } = setUp()
    const parent = await launch('p', undefined, { owner: 'boss' })
    await launch('runs', 'p')
    ;(await launch('ended', 'p')).end()
    await settle()
    const changes: string[] = []
    manager.transitions$.subscribe(({ taskId, kind, to }) => changes.push(`${taskId} ${kind} ${to}`))
    parent.end()
    await settle()
    expect(changes).toEqual(['p status completed', 'p delivery owed', 'runs owner boss', 'ended owner boss'])
    expect(task('p')).toMatchObject({ status: 'completed', runningChildren: ['runs'] })
    expect(task('runs')).toMatchObject({ status: 'running', owner: 'boss', parentId: 'p' })
    expect(manager.getPendingNotifications('boss').map(({ id }) => id)).toEqual(['ended', 'p'])
    const reminders = new AsyncTaskReminderService(manager)
    expect(JSON.parse(reminders.formatCompletionNotification(task('p')))).toMatchObject({
      agent_id: 'p',
      running_children: ['runs'],
    })
  })

  it('F5: leaves them running also when it failed', async () => {
    const { launch, task, manager } = setUp()
    const parent = await launch('p')
    await launch('c', 'p')
    parent.fail(new Error('broken'))
    await settle()
    expect(task('p')).toMatchObject({ status: 'failed', runningChildren: ['c'] })
    expect(task('c')).toMatchObject({ status: 'running', owner: 'main' })
    const reminders = new AsyncTaskReminderService(manager)
    expect(reminders.formatCompletionNotification(task('p'))).toContain('"running_children"')
  })

  it('F5: passes them up a family of three', async () => {
    const { launch, task } = setUp()
    await launch('p')
    const child = await launch('c', 'p')
    await launch('g', 'c')
    child.end()
    await settle()
    expect(task('g')).toMatchObject({ owner: 'run:p', parentId: 'c' })
    expect(task('c')).toMatchObject({ owner: 'run:p', delivery: 'owed' })
  })

  it('F5: shows and cancels them with the family that has them now', async () => {
    const { launch, getAsyncTaskManager, manager, statuses } = setUp()
    await launch('p')
    const child = await launch('c', 'p')
    await launch('g', 'c')
    child.end()
    await settle()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager, owner: 'main' })
    expect((await check.execute({})).metadata).toMatchObject({ count: 3 })
    const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager, owner: 'main' })
    expect((await wait.execute({ task_ids: ['g'] })).llmContent).toContain('goes to task p, which owns it')
    manager.cancelTask('p')
    expect(statuses('p', 'c', 'g')).toEqual(['cancelled', 'completed', 'cancelled'])
    expect(manager.getPendingNotifications('main').map(({ id }) => id)).toEqual(['c'])
  })

  it('F5: passes what it was handed to its owner, too', async () => {
    const { manager, register, launch, task } = setUp()
    const parent = await launch('p', undefined, { owner: 'boss' })
    await launch('launched', undefined, { owner: ownerOfRun('p') })
    register('handed', { owner: 'session' })
    expect(manager.releaseOwner('session', { to: ownerOfRun('p') })).toBe(1)
    manager.completeTask('handed', {})
    parent.end()
    await settle()
    expect([task('launched').owner, task('handed').owner]).toEqual(['boss', 'boss'])
    expect(manager.getPendingNotifications('boss').map(({ id }) => id)).toEqual(['handed', 'p'])
  })

  it('F5: passes what it was handed alone to its owner', async () => {
    const { manager, register, launch, task } = setUp()
    const parent = await launch('p', undefined, { owner: 'boss' })
    register('handed', { owner: 'session' })
    manager.releaseOwner('session', { to: ownerOfRun('p') })
    parent.end()
    await settle()
    expect(task('handed').owner).toBe('boss')
  })

  it('F5: owes nobody what they end with when its own owner is gone', async () => {
    const { launch, task, manager } = setUp()
    const parent = await launch('p', undefined, { owner: 'session' })
    const child = await launch('c', 'p')
    manager.releaseOwner('session')
    parent.end()
    await settle()
    child.end()
    await settle()
    expect([task('p').delivery, task('c').delivery]).toEqual(['none', 'none'])
  })

  it('F5: names nothing for a task without children', async () => {
    const { launch, task } = setUp()
    ;(await launch('p')).end()
    await settle()
    expect(task('p')).not.toHaveProperty('runningChildren')
  })
})

describe('an owner that is a run', () => {
  it.each(['p', 'unknown'])('F5: is refused when its task has ended or is not known (%s)', async (id) => {
    const { manager, run, register, launch } = setUp()
    const parent = await launch('p')
    parent.end()
    await settle()
    const owner = ownerOfRun(id)
    const expected = `got "run:${id}", expected an owner, or "run:" and the id of a task that has not ended.`
    const input = { subagentName: 'agent', goalPrompt: 'g', owner }
    expect(() => manager.launch(input, run)).toThrow(`input.owner: ${expected}`)
    expect(() => register('a', { owner })).toThrow(`input.owner: ${expected}`)
    expect(() => manager.releaseOwner('main', { to: owner })).toThrow(`input.to: ${expected}`)
    expect(manager.getPendingNotifications('main').map((task) => task.id)).toEqual(['p'])
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it.each(['p', 'c', 'g'])('F5: does not get what it belongs to itself (%s)', async (id) => {
    const { manager, launch, task } = setUp()
    await launch('p')
    await launch('c', 'p')
    await launch('g', 'c')
    const to = ownerOfRun(id)
    expect(() => manager.releaseOwner('main', { to })).toThrow(
      `input.to: got "run:${id}", expected an owner other than a run that belongs to "main" itself.`,
    )
    if (id === 'g') expect(() => manager.releaseOwner('run:p', { to })).toThrow(InvalidInputError)
    expect(['p', 'c', 'g'].map((each) => task(each).owner)).toEqual(['main', 'run:p', 'run:c'])
    expect(manager.releaseOwner(to, { to })).toBe(id === 'g' ? 0 : 1)
  })
})

describe('a parent that is run again', () => {
  it('F5, F9: hands over what the failed run had, and that run launches no more', async () => {
    const { clock, manager, open, task } = setUp()
    const contexts: RunContext[] = []
    const failing: RunFunction = (_input, context) => {
      contexts.push(context)
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(new Error('aborted')))
        fail = () => reject(Object.assign(new Error('busy'), { code: 'RATE_LIMITED' }))
      })
    }
    let fail = (): void => undefined
    const retry = { attempts: 2, on: ['rate-limited' as const], backoff: { initialMs: 100, jitter: false } }
    manager.launch({ id: 'p', subagentName: 'p', goalPrompt: 'g' }, { run: failing, retry })
    await settle()
    contexts[0]?.launch({ id: 'c', subagentName: 'agent', goalPrompt: 'g' })
    await settle()
    fail()
    await settle()
    expect(task('p').status).toBe('queued')
    expect(task('c')).toMatchObject({ status: 'running', owner: 'main', parentId: 'p' })
    const late = () => contexts[0]?.launch({ subagentName: 'agent', goalPrompt: 'late' })
    expect(late).toThrow(FamilyError)
    clock.advance(100_000)
    await settle()
    expect(task('p')).toMatchObject({ status: 'running', attempt: 2 })
    expect(late).toThrow(FamilyError)
    contexts[1]?.launch({ id: 'd', subagentName: 'agent', goalPrompt: 'g' })
    expect(contexts[0]?.children.ids()).toEqual([])
    expect(contexts[0]?.children.cancel('d')).toBe(false)
    expect(contexts[1]?.children.ids()).toEqual(['d'])
    expect(open('c').context.owner).toBe('main')
  })
})

describe('a child that waits for a slot', () => {
  it('F5, F8: is a part of its family', async () => {
    const { launch, manager, open, statuses, task } = setUp({ maxChildTasks: 1, maxChildrenPerTask: 2 })
    const { context } = await launch('p')
    await launch('a', 'p')
    const input = { subagentName: 'agent', goalPrompt: 'g', whenFull: 'queue' as const }
    expect(context.launch({ ...input, id: 'b' })).toMatchObject({ status: 'queued', owner: 'run:p', parentId: 'p' })
    expect(context.children.ids()).toEqual(['a', 'b'])
    expect(() => context.launch({ ...input, id: 'c' })).toThrow(FamilyError)
    open('a').end()
    await settle()
    expect(statuses('a', 'b')).toEqual(['completed', 'running'])
    await context.children.waitFor(['a'])
    context.launch({ ...input, id: 'c' })
    open('p').end()
    await settle()
    expect(task('p')).toMatchObject({ runningChildren: ['b', 'c'] })
    expect(task('c')).toMatchObject({ status: 'queued', owner: 'main' })
    manager.cancelAll()
    expect(statuses('b', 'c')).toEqual(['cancelled', 'cancelled'])
  })

  it('F5, F8: is cancelled with its parent', async () => {
    const { launch, manager, statuses } = setUp({ maxChildTasks: 1 })
    const { context } = await launch('p')
    await launch('a', 'p')
    context.launch({ id: 'b', subagentName: 'agent', goalPrompt: 'g', whenFull: 'queue' })
    manager.cancelTask('p')
    expect(statuses('a', 'b')).toEqual(['cancelled', 'cancelled'])
    await settle()
    expect(manager.getRunningTasks()).toEqual([])
  })
})

describe('a cancellation', () => {
  it('F5: goes down, with its reason', async () => {
    const { launch, task, manager, statuses } = setUp()
    const aborted: string[] = []
    for (const [id, parent] of [['p'], ['c', 'p'], ['g', 'c'], ['other']] as const) {
      const { context } = await launch(id, parent)
      context.signal.addEventListener('abort', () => aborted.push(id))
    }
    expect(manager.cancelTask('p', { reason: 'enough' })).toBe(true)
    expect(statuses('p', 'c', 'g', 'other')).toEqual(['cancelled', 'cancelled', 'cancelled', 'running'])
    expect([task('p').cancelReason, task('c').cancelReason, task('g').cancelReason]).toEqual([
      'enough',
      'its parent p was cancelled',
      'its parent c was cancelled',
    ])
    expect(aborted).toEqual(['p', 'c', 'g'])
  })

  it('F5: names no children that run: they were cancelled with it', async () => {
    const { launch, manager, task } = setUp()
    await launch('p')
    await launch('c', 'p')
    manager.cancelTask('p')
    expect(task('p')).not.toHaveProperty('runningChildren')
    expect(task('c')).toMatchObject({ status: 'cancelled', parentId: 'p', depth: 1 })
  })

  it('F5: of a child leaves the parent and its other children', async () => {
    const { launch, manager, statuses } = setUp()
    await launch('p')
    await launch('a', 'p')
    await launch('b', 'p')
    await launch('g', 'a')
    manager.cancelTask('a')
    expect(statuses('p', 'a', 'b', 'g')).toEqual(['running', 'cancelled', 'running', 'cancelled'])
  })

  it('F5: goes down when the controller of the parent is aborted, and when all are cancelled', async () => {
    const { launch, manager, statuses } = setUp()
    const abortController = new AbortController()
    await launch('p', undefined, { abortController })
    await launch('c', 'p')
    await launch('q', undefined, { owner: 'boss' })
    await launch('d', 'q')
    abortController.abort()
    expect(statuses('p', 'c', 'q', 'd')).toEqual(['cancelled', 'cancelled', 'running', 'running'])
    expect(manager.cancelAll({ owner: 'boss' })).toEqual(['q', 'd'])
  })

  it('F5: is delivered to the owner of the parent where cancelled tasks are', async () => {
    const { launch, manager } = setUp({ notifyCancelled: true })
    await launch('p')
    await launch('c', 'p')
    manager.cancelTask('p')
    expect(manager.getPendingNotifications('main').map(({ id }) => id)).toEqual(['p', 'c'])
  })

  it('F5: goes down when the deadline of the parent has passed, before the parent fails', async () => {
    const { launch, clock, task, statuses, open } = setUp({ graceMs: 100 })
    await launch('p', undefined, { timeoutMs: 1000 })
    await launch('c', 'p')
    const late: unknown[] = []
    open('p').context.signal.addEventListener('abort', () => {
      try {
        open('p').context.launch({ subagentName: 'agent', goalPrompt: 'late' })
      } catch (error) {
        late.push(error)
      }
    })
    clock.advance(1000)
    expect(statuses('p', 'c')).toEqual(['running', 'cancelled'])
    expect(task('c').cancelReason).toBe('its parent p has reached its limit')
    expect(late).toMatchObject([{ code: 'PARENT_ENDED' }])
    await settle()
    expect(task('p')).toMatchObject({ status: 'failed' })
    expect(task('p')).not.toHaveProperty('runningChildren')
  })

  it('F5: of everything is what dispose does', async () => {
    const { launch, manager, statuses } = setUp()
    await launch('p')
    await launch('c', 'p')
    await manager.dispose()
    expect(statuses('p', 'c')).toEqual(['cancelled', 'cancelled'])
  })

  it('F5, K6: of a family is one write, before the first abort', async () => {
    const memory = memoryStore()
    const writes: string[][] = []
    const store: Store = {
      ...memory,
      write: async (changes) => {
        writes.push(changes.flatMap((change) => ('put' in change ? [change.put.id] : [])))
        await memory.write(changes)
      },
    }
    const { launch, manager } = setUp({ store })
    const { context } = await launch('p')
    await launch('c', 'p')
    await launch('g', 'c')
    const atAbort: number[] = []
    context.signal.addEventListener('abort', () => atAbort.push(writes.length))
    writes.length = 0
    manager.cancelTask('p')
    await manager.stored()
    expect(writes[0]?.sort()).toEqual(['c', 'g', 'p'])
    expect(atAbort).toEqual([1])
  })
})

describe('a family after a crash', () => {
  const onStore = (store: Store, options: AsyncTaskManagerOptions = {}) => {
    const host = setUp({ store, clock: createManualClock(), onError: () => undefined, ...options })
    onTestFinished(() => host.manager.dispose())
    return host
  }

  it('F5, K4: what a dead run owned is owed to the owner of its task', async () => {
    const store = memoryStore()
    const { launch } = onStore(store)
    await launch('p', undefined, { owner: 'boss' })
    await launch('c', 'p')
    ;(await launch('ended', 'p')).end('found')
    await launch('g', 'c')
    await settle()
    const copy = store.copy()
    const { manager, task } = onStore(copy, { findRunner: () => undefined })
    await manager.recovered
    await settle()
    expect(new Set(copy.contents().tasks.map(({ owner, record }) => `${owner} ${String(record['owner'])}`))).toEqual(
      new Set(['boss boss']),
    )
    expect(['p', 'c', 'ended', 'g'].map((id) => task(id).owner)).toEqual(['boss', 'boss', 'boss', 'boss'])
    expect(task('g')).toMatchObject({ parentId: 'c', depth: 2, errorCode: 'INTERRUPTED' })
    expect(
      manager
        .getPendingNotifications('boss')
        .map(({ id }) => id)
        .sort(),
    ).toEqual(['c', 'ended', 'g', 'p'])
    await settle()
  })

  it('F5, K4: so is what was handed to a dead run', async () => {
    const store = memoryStore()
    const { launch, manager: first } = onStore(store)
    await launch('p', undefined, { owner: 'boss' })
    await launch('a', undefined, { owner: ownerOfRun('p') })
    first.registerTask({ id: 'b', subagentName: 'agent', goalPrompt: 'g', owner: 'other' })
    first.releaseOwner('other', { to: ownerOfRun('p') })
    await settle()
    const { manager, task } = onStore(store.copy(), { findRunner: () => undefined })
    await manager.recovered
    expect(['p', 'a', 'b'].map((id) => task(id).owner)).toEqual(['boss', 'boss', 'boss'])
    await settle()
  })

  it('F5, K4: nor is what a dead run had from one that ended before it', async () => {
    const store = memoryStore()
    const { launch, run, open } = onStore(store)
    await launch('p')
    const child = await launch('c', 'p')
    await launch('g', 'c')
    child.end()
    await settle()
    const survivor: Runner = { run, survivesHost: true }
    const next = onStore(store.copy(), { findRunner: () => survivor })
    await next.manager.recovered
    expect(next.task('g').owner).toBe('run:p')
    open('p').end()
    await settle()
    expect(['g', 'c'].map((id) => next.task(id).owner)).toEqual(['main', 'main'])
    const last = onStore(store.copy(), { findRunner: () => undefined })
    await last.manager.recovered
    expect(['p', 'c', 'g'].map((id) => last.task(id).owner)).toEqual(['main', 'main', 'main'])
  })

  it('F5, K7: a parent that is run again does not adopt them', async () => {
    const store = memoryStore()
    const first = onStore(store)
    await first.launch('p')
    await first.launch('c', 'p')
    const retried = { run: first.run, retry: { attempts: 2, on: ['interrupted' as const] } }
    const next = onStore(store.copy(), { findRunner: () => retried })
    expect((await next.manager.recovered).retried).toEqual(['p', 'c'])
    await settle()
    expect(next.task('c')).toMatchObject({ status: 'running', owner: 'main', parentId: 'p', attempt: 2 })
    expect(first.open('p').context.attempt).toBe(2)
    expect(first.open('p').context.children.ids()).toEqual([])
    next.manager.cancelTask('p')
    expect(next.statuses('p', 'c')).toEqual(['cancelled', 'running'])
  })

  it('F5: a parent that goes on keeps them', async () => {
    const store = memoryStore()
    const first = onStore(store)
    await first.launch('p')
    await first.launch('c', 'p')
    const survivor: Runner = { run: first.run, survivesHost: true }
    const next = onStore(store.copy(), { findRunner: () => survivor })
    expect((await next.manager.recovered).adopted).toEqual(['p', 'c'])
    expect(next.task('c').owner).toBe('run:p')
    next.manager.cancelTask('p')
    expect(next.statuses('p', 'c')).toEqual(['cancelled', 'cancelled'])
  })

  it('F5: what its run has taken is not delivered again when the parent has ended', async () => {
    const store = memoryStore()
    const { launch } = onStore(store)
    const parent = await launch('p')
    ;(await launch('c', 'p')).end()
    await parent.context.children.waitFor()
    parent.end()
    await settle()
    expect(store.contents().deliveries).toEqual([])
    const next = onStore(store.copy())
    await next.manager.recovered
    expect(next.manager.getPendingNotifications().map(({ id }) => id)).toEqual(['p'])
  })

  it('F5: restored records have living owners', () => {
    const base = { subagentName: 's', goalPrompt: 'g', launchedAt: 0 }
    const manager = AsyncTaskManager.restore([
      { ...base, id: 'p', owner: 'boss', status: 'running' },
      { ...base, id: 'c', owner: 'run:p', parentId: 'p', depth: 1, status: 'completed', delivery: 'owed' },
      // Records that name each other, or nobody.
      { ...base, id: 'x', owner: 'run:y', parentId: 'y', depth: 1, status: 'running' },
      { ...base, id: 'y', owner: 'run:x', parentId: 'x', depth: 1, status: 'running' },
    ])
    onTestFinished(() => manager.dispose())
    expect(manager.getAllTasks().map(({ id, owner }) => [id, owner])).toEqual([
      ['c', 'boss'],
      ['p', 'boss'],
      ['x', 'main'],
      ['y', 'main'],
    ])
    expect(new AsyncTaskReminderService(manager).generateStatusSummary('main')).toContain('[ASYNC TASKS: 2 total]')
  })
})

describe('a family is shown', () => {
  async function family() {
    const host = setUp()
    await host.launch('parent')
    await host.launch('other')
    await host.launch('child', 'parent')
    ;(await host.launch('grandchild', 'child')).end('found')
    await settle()
    return host
  }

  it('F5: as a tree in lists, commands and the status summary', async () => {
    const { manager, getAsyncTaskManager } = await family()
    const list = await createCheckAsyncTasksTool({ getAsyncTaskManager, owner: 'main' }).execute({})
    expect(list.llmContent.split('\n').filter((line) => line.includes('['))).toEqual([
      ' [parent] agent - running (0s) - goal of parent',
      '   [child] agent - running (0s) - goal of child',
      '    [OK] [grandchi] agent - completed (0s) - goal of grandchild',
      ' [other] agent - running (0s) - goal of other',
    ])
    expect(list.metadata).toMatchObject({ count: 4, running: 3, completed: 1 })
    expect(runCommandLine(createTaskCommands({ getAsyncTaskManager, owner: 'main' }), '/tasks')?.text).toBe(
      [
        '[RUNNING] [parent] agent (0s) - goal of parent',
        '  [RUNNING] [child] agent (0s) - goal of child',
        '    [DONE] [grandchi] agent (0s) - goal of grandchild',
        '[RUNNING] [other] agent (0s) - goal of other',
      ].join('\n'),
    )
    expect(new AsyncTaskReminderService(manager).generateStatusSummary('main').split('\n')).toEqual([
      '[ASYNC TASKS: 4 total]',
      '[1] agent - [RUNNING] (parent...)',
      '  [2] agent - [RUNNING] (child...)',
      '    [3] agent - [DONE] (grandchi...)',
      '[4] agent - [RUNNING] (other...)',
    ])
  })

  it('F5: to no other owner', async () => {
    const { getAsyncTaskManager } = await family()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager, owner: 'other' })
    expect((await check.execute({})).llmContent).toBe('No async tasks.')
    expect((await check.execute({ task_id: 'child' })).error?.message).toBe('Task not found')
  })

  it('F5: with parent and children in the details', async () => {
    const { getAsyncTaskManager } = await family()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager, owner: 'main' })
    expect((await check.execute({ task_id: 'child' })).metadata).toMatchObject({
      parent: 'parent',
      children: ['grandchild (completed)'],
    })
    expect((await check.execute({ task_id: 'other' })).metadata).not.toHaveProperty('children')
  })

  it('F5: and a look from above takes no result away from a run', async () => {
    const { getAsyncTaskManager, task } = await family()
    for (const owner of ['main', undefined]) {
      const options = { getAsyncTaskManager, ...(owner !== undefined && { owner }) }
      await createCheckAsyncTasksTool(options).execute({ task_id: 'grandchild' })
      const waited = await createWaitForAsyncTasksTool(options).execute({ task_ids: ['grandchild'] })
      expect(waited.llmContent).toBe('The result of task grandchild goes to task child, which owns it. Wait for child.')
      expect(task('grandchild').delivery).toBe('owed')
    }
  })

  it('F5: and can be cancelled from above', async () => {
    const { getAsyncTaskManager, statuses } = await family()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager, owner: 'main' })
    await check.execute({ task_id: 'child', action: 'cancel' })
    expect(statuses('parent', 'child', 'other')).toEqual(['running', 'cancelled', 'running'])
  })
})

describe('an aborted call of the task tool', () => {
  it.each([
    ['the user changed the plan', 'the user changed the plan.'],
    ['Enough!', 'Enough!'],
  ])('F4, F5: says why, and what it took along, in the error and in the text (%s)', async (reason, said) => {
    const { getAsyncTaskManager, open, run } = setUp()
    const tool = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => run })
    const controller = new AbortController()
    const result = tool.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    await settle()
    for (const id of ['c', 'd']) open('agent-1').context.launch({ id, subagentName: 'agent', goalPrompt: 'g' })
    controller.abort(reason)
    const sentence = `Task agent-1 was cancelled, because: ${said} 2 task(s) that it had launched were cancelled, too.`
    const { error, llmContent } = await result
    expect(error).toEqual({ type: 'cancelled', message: sentence })
    expect(llmContent).toBe(
      `${JSON.stringify({ agent_id: 'agent-1', status: 'cancelled', reason }, null, 2)}\n${sentence}`,
    )
  })

  it('F4: says why without children, too', async () => {
    const { getAsyncTaskManager, run } = setUp()
    const tool = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => run })
    const controller = new AbortController()
    const result = tool.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    await settle()
    controller.abort('enough')
    expect((await result).llmContent.split('\n').at(-1)).toBe('Task agent-1 was cancelled, because: enough')
  })

  it.each([
    [
      'cancel',
      {
        type: 'cancelled',
        message:
          'Task agent-1 was cancelled, because its call was aborted. 1 task(s) that it had launched were cancelled, too.',
      },
      ['cancelled', 'cancelled'],
    ],
    [
      'keep',
      {
        type: 'aborted',
        message:
          'The call was aborted. Task agent-1 continues in the background with the 1 task(s) that it has launched, and its result will be delivered.',
      },
      ['running', 'running'],
    ],
  ] as const)('F4, F5: says what becomes of its children (%s)', async (onForegroundAbort, error, ends) => {
    const { getAsyncTaskManager, open, run, statuses } = setUp()
    const tool = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => run, onForegroundAbort })
    const controller = new AbortController()
    const result = tool.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    await settle()
    open('agent-1').context.launch({ id: 'c', subagentName: 'agent', goalPrompt: 'g' })
    controller.abort()
    expect((await result).error).toEqual(error)
    expect(statuses('agent-1', 'c')).toEqual(ends)
  })
})

describe('an agent in a run', () => {
  it('F5: launches with the tools of its run, and hears of its tasks alone', async () => {
    const texts: string[] = []
    const helper: SubagentRunner = ({ goal }) => ({ final_message: `${goal} done` })
    const lead: SubagentRunner = async (_, { taskId }) => {
      const tools = tasks.toolsOfRun(taskId)
      const launch = (goal_prompt: string, async: boolean) =>
        tools.task.execute({ subagent_name: 'helper', goal_prompt, async })
      texts.push((await launch('first', true)).llmContent, (await launch('second', false)).llmContent)
      await settle()
      const { reminder } = await tasks.withTurn((turn) => turn, ownerOfRun(taskId))
      texts.push(reminder?.text ?? '')
      texts.push((await tools.check_async_tasks.execute({})).llmContent)
      return { final_message: 'led' }
    }
    const tasks = createAgentTasks({ subagents: { lead, helper }, maxAsyncTasks: 1 })
    onTestFinished(() => tasks.dispose())
    await tasks.tools.task.execute({ subagent_name: 'lead', goal_prompt: 'lead', async: true })
    await tasks.getAsyncTaskManager().onIdle('run:nobody')
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect(texts[0]).toMatch(/^Async task launched: subagent 'helper'/)
    expect(texts[1]).toContain('second done')
    expect(texts[2]).toContain('first done')
    expect(texts[3]).toContain('- Completed: 2')
    const { reminder } = tasks.beforeTurn()
    expect(reminder?.taskIds).toHaveLength(1)
    expect(reminder?.text).toContain('led')
    tasks.afterTurn({ accepted: true })
  })

  it('F5: is refused in words at the limit', async () => {
    const { launch, getAsyncTaskManager, run } = setUp({ maxChildrenPerTask: 0 })
    await launch('p')
    const tool = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => run, parentId: 'p' })
    const call = (async: boolean) => tool.execute({ subagent_name: 'agent', goal_prompt: 'g', async })
    expect((await call(true)).error).toMatchObject({ type: 'limit_reached' })
    expect((await call(true)).llmContent).toContain('Task p has the maximum number of children (0, maxChildrenPerTask)')
    expect((await call(false)).error?.message).toContain(
      'Task p has the maximum number of children (0, maxChildrenPerTask)',
    )
  })

  it('F5: sees its own tasks with the tools of its run, and no other', async () => {
    const tasks = createAgentTasks({ subagents: {}, maxAsyncTasks: -1 })
    onTestFinished(() => tasks.dispose())
    const { manager } = tasks
    const launch = (id: string, parentId?: string) =>
      manager.launch(
        { id, subagentName: 'agent', goalPrompt: 'g', ...(parentId !== undefined && { parentId }) },
        untilAborted,
      )
    launch('parent-task')
    launch('child-task', 'parent-task')
    launch('other-task')
    const shown = async (of: typeof tasks.tools) => {
      const { llmContent } = await of.check_async_tasks.execute({})
      return ['parent-task', 'child-task', 'other-task'].filter((id) => llmContent.includes(id.slice(0, 8)))
    }
    expect(await shown(tasks.toolsOfRun('parent-task'))).toEqual(['child-task'])
    expect(await shown(tasks.tools)).toEqual(['parent-task', 'child-task', 'other-task'])
    const { error } = await tasks.toolsOfRun('parent-task').check_async_tasks.execute({ task_id: 'other-task' })
    expect(error).toBeDefined()
  })
})
