/** Tasks that continue others which have ended: U1. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  AsyncTaskManager,
  createAgentTasks,
  type AsyncTaskManagerOptions,
  type RunContext,
  type RunFunction,
} from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick } from '../../support/limited-tasks.js'
import type { PreviousTask } from '../../../src/engine/runner.js'
import { ownerOfRun } from '../../../src/parts.js'

const setUp = (options: AsyncTaskManagerOptions = {}) => limitedTasks({ maxAsyncTasks: 10, ...options })

/** A manager with the task `a` of `agent`, which has noted a session and has completed. */
async function withEnded(options: AsyncTaskManagerOptions = {}) {
  const tasks = setUp(options)
  const { manager, runs, launch } = tasks
  await launch('a', { owner: 'alice', timeoutMs: 5000, budget: { tokens: 7 }, concurrencyKey: 'k' })
  runs[0]?.context.setSession('s-1', { cwd: '/work' })
  await runs[0]?.end('found it')
  const send = async (task: Parameters<AsyncTaskManager['continueTask']>[0], message = 'and now?') => {
    const record = manager.continueTask(task, message)
    await tick()
    return record
  }
  return { ...tasks, send }
}

const refusal = (run: () => unknown): { readonly code?: string; readonly message: string } => {
  try {
    run()
  } catch (error) {
    return error as Error
  }
  throw new Error('it was not refused')
}

describe('a task that continues another one', () => {
  it('U1: is one of the same subagent and owner, with its limits, and its run gets how the other one ended', async () => {
    const { manager, runs, send } = await withEnded()
    const { id } = await send('a')
    expect(manager.getTask(id)).toMatchObject({
      subagentName: 'agent',
      goalPrompt: 'and now?',
      owner: 'alice',
      continues: 'a',
      session: { id: 's-1', cwd: '/work' },
      timeoutMs: 5000,
      budget: { tokens: 7 },
      concurrencyKey: 'k',
    })
    const previous: PreviousTask = {
      id: 'a',
      goal: 'goal of a',
      status: 'completed',
      endedAt: 1000,
      output: { final_message: 'found it' },
      session: { id: 's-1', cwd: '/work' },
    }
    expect(runs[1]?.context.previous).toEqual(previous)
    expect(Object.isFrozen(runs[1]?.context.previous)).toBe(true)
    expect(runs[0]?.context.previous).toBeUndefined()
    await runs[1]?.end('more')
    expect(manager.getTask(id)).toMatchObject({ status: 'completed', continues: 'a', session: { id: 's-1' } })
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', output: { final_message: 'found it' } })
    expect(manager.getPendingNotifications('alice').map((task) => task.id)).toEqual(['a', id])
    expect(manager.getPendingNotifications('main')).toEqual([])
    expect(manager.actor.getSnapshot().slots).toBe(0)
  })

  it('U1: continues a failed and a cancelled one as well, with the reason, and can be continued itself', async () => {
    const { runs, launch, manager, send } = await withEnded()
    await launch('b')
    await runs[1]?.fail(Object.assign(new Error('no disk'), { code: 'ENOSPC' }))
    const next = await send('b')
    expect(runs[2]?.context.previous).toMatchObject({ status: 'failed', error: 'no disk', errorCode: 'ENOSPC' })
    manager.cancelTask(next.id, 'enough')
    await tick()
    const last = await send(next.id, 'once more')
    expect(runs[3]?.context.previous).toEqual({
      id: next.id,
      goal: 'and now?',
      status: 'cancelled',
      cancelReason: 'enough',
      continues: 'b',
      endedAt: 1000,
    })
    expect(manager.getTask(last.id)?.continues).toBe(next.id)
  })

  it('U1: gets of a long goal and a long result about as much as a message has', async () => {
    const { runs, launch, send } = await withEnded()
    await launch('b', { goalPrompt: 'g'.repeat(100_000) })
    await runs[1]?.end('r'.repeat(100_000))
    await send('b')
    const { previous } = runs[2]!.context
    expect(previous?.goal.length).toBeLessThan(21_000)
    expect(previous).toMatchObject({ isCut: true })
    expect(JSON.stringify(previous).length).toBeLessThan(42_000)
  })

  it('U1: is one at a time: for a task, and for a session of a subagent, also in another task', async () => {
    const { manager, runs, send, launch } = await withEnded()
    const first = await send('a')
    expect(refusal(() => manager.continueTask('a', 'm'))).toMatchObject({
      code: 'NOT_CONTINUED',
      message: `Task "a" cannot be continued: task "${first.id}" already continues it.`,
    })
    await runs[1]?.end()
    const second = await send(first.id)
    // It continues another task, with the same session.
    expect(refusal(() => manager.continueTask('a', 'm')).message).toContain(`task "${second.id}" already continues it`)
    // A session of the same name belongs to another subagent.
    await launch('other', { subagentName: 'other' })
    runs[3]?.context.setSession('s-1')
    await runs[3]?.end()
    expect(manager.continueTask('other', 'm').continues).toBe('other')
    await runs[2]?.end()
    expect(manager.continueTask('a', 'm').continues).toBe('a')
  })

  it('U1: waits for nothing of the session that it has left: the newest one counts', async () => {
    const { manager, runs, send } = await withEnded()
    const first = await send('a')
    runs[1]?.context.setSession('s-2')
    await runs[1]?.end()
    const second = await send(first.id)
    expect(second.session).toEqual({ id: 's-2' })
    // That of the first task is another one.
    expect(manager.continueTask('a', 'm').session).toEqual({ id: 's-1', cwd: '/work' })
  })

  it('U1: does not begin while the run of the ended task is still ending', async () => {
    const clock = createManualClock()
    let end: () => void = () => undefined
    const run: RunFunction = () => new Promise((resolve) => (end = () => resolve('late')))
    const manager = new AsyncTaskManager({ clock, graceMs: 1000, onError: () => undefined })
    onTestFinished(() => manager.dispose())
    manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, run)
    await tick()
    manager.cancelTask('a')
    expect(refusal(() => manager.continueTask('a', 'm')).message).toBe(
      'Task "a" cannot be continued: its run is still ending.',
    )
    end()
    await tick()
    const { id } = manager.continueTask('a', 'm')
    // Nor while that of a task is that has continued it.
    await tick()
    manager.cancelTask(id)
    expect(refusal(() => manager.continueTask('a', 'm')).message).toContain(`task "${id}" already continues it`)
    end()
    await tick()
    expect(manager.continueTask('a', 'm').status).toBe('running')
    await tick()
    end()
    await tick()
  })

  it('U1: queues like any launch, and is refused at the limit with nothing changed', async () => {
    const { manager, launch, runs } = setUp({ maxAsyncTasks: 1 })
    await launch('a')
    await runs[0]?.end()
    await launch('b')
    expect(refusal(() => manager.continueTask('a', 'm')).code).toBe('TASK_LIMIT')
    expect(manager.getAllTasks()).toHaveLength(2)
    await runs[1]?.end()
    expect(manager.continueTask('a', 'm').status).toBe('running')
    const queueing = await withEnded({ maxAsyncTasks: 1, whenFull: 'queue' })
    await queueing.launch('b')
    const waiting = await queueing.send('a')
    expect(waiting.status).toBe('queued')
    expect(refusal(() => queueing.manager.continueTask('a', 'm')).message).toContain('already continues it')
    await queueing.runs[1]?.end()
    expect(queueing.runs[2]?.context.previous?.id).toBe('a')
  })
})

describe('what cannot be continued', () => {
  it('U1: is refused with the reason, and nothing has changed', async () => {
    const { manager, launch, runs } = await withEnded()
    await launch('runs')
    await launch('told', {}, { whyNotContinue: ({ id, session }) => `${id} has ${session?.id ?? 'no session'}` })
    await runs[2]?.end()
    manager.registerTask({ id: 'own', subagentName: 'nobody', goalPrompt: 'g' })
    manager.completeTask('own', {})
    await launch('program', { kind: 'command', command: ['ls'] })
    await runs[3]?.end()
    const before = JSON.stringify(manager.getAllTasks())
    const why = (id: string) => refusal(() => manager.continueTask(id, 'm')).message
    expect(why('runs')).toBe('Task "runs" cannot be continued: it has not ended: it is running.')
    expect(why('told')).toBe('Task "told" cannot be continued: told has no session.')
    expect(why('own')).toBe('Task "own" cannot be continued: no subagent "nobody" is known.')
    expect(why('program')).toBe(
      'Task "program" cannot be continued: it is a command or a note, so no subagent has run it.',
    )
    expect(why('none')).toBe('task: got "none", expected the id of a task that is kept, or a record of the history.')
    expect(refusal(() => manager.continueTask('a', '')).message).toContain('message')
    expect(refusal(() => manager.continueTask(7 as never, 'm')).message).toContain('task')
    expect(refusal(() => manager.continueTask({} as never, 'm')).message).toContain('task')
    expect(JSON.stringify(manager.getAllTasks())).toBe(before)
    expect(manager.sendToTask('a', 'm')).toEqual({ sent: false, reason: 'Task "a" has ended: it is completed.' })
  })

  it('U1: a session with another id than an argument may be, and one of a run that is over', async () => {
    const { launch, runs, manager } = await withEnded()
    await launch('b', { retry: { attempts: 2, on: ['exit-code'] } })
    const { context } = runs[1]!
    for (const id of ['', '-x', 'a b', 'a\n', 'a'.repeat(201), '--resume', 7 as never]) {
      expect(() => context.setSession(id)).toThrow(/^session\.id: got /)
    }
    expect(() => context.setSession('a', { cwd: '' })).toThrow(/^session\.cwd: got /)
    expect(manager.getTask('b')?.session).toBeUndefined()
    context.setSession('A.b:c-d_e')
    expect(manager.getTask('b')?.session).toEqual({ id: 'A.b:c-d_e' })
    await runs[1]?.end()
    context.setSession('late')
    expect(manager.getTask('b')?.session).toEqual({ id: 'A.b:c-d_e' })
  })
})

it('U1: the session of an earlier attempt changes nothing any more, and the next one keeps the last', async () => {
  const { launch, runs, manager } = setUp()
  await launch('b', { retry: { attempts: 2, on: ['start-failed'], backoff: { initialMs: 0 } } })
  runs[0]?.context.setSession('s-1')
  await runs[0]?.fail(Object.assign(new Error('no'), { code: 'PROCESS_NOT_STARTED' }))
  expect(manager.getTask('b')).toMatchObject({ attempt: 2, session: { id: 's-1' } })
  runs[0]?.context.setSession('late')
  expect(manager.getTask('b')?.session).toEqual({ id: 's-1' })
  runs[1]?.context.setSession('s-2')
  expect(manager.getTask('b')?.session).toEqual({ id: 's-2' })
  await runs[1]?.end()
})

describe('the owner of a continuation', () => {
  it('U1: is the run that owned the task while it goes on, and then the owner of that run', async () => {
    const { manager, runs, launch, runner } = setUp()
    await launch('top', { owner: 'alice' })
    const { context } = runs[0]!
    context.launch({ id: 'child', subagentName: 'agent', goalPrompt: 'g' }, runner)
    await tick()
    await runs[1]?.end()
    const next = manager.continueTask('child', 'm')
    expect(next).toMatchObject({ owner: ownerOfRun('top'), parentId: 'top', depth: 1 })
    await tick()
    await runs[2]?.end()
    await context.children.waitFor()
    await runs[0]?.end()
    const last = manager.continueTask('child', 'm')
    expect(last.owner).toBe('alice')
    expect(last.parentId).toBeUndefined()
  })

  it('U1: is nobody else when that run is not known any more', async () => {
    const { manager } = setUp()
    const record = { id: 'x', subagentName: 'agent', goalPrompt: 'g', owner: ownerOfRun('gone'), launchedAt: 1 }
    const restored = AsyncTaskManager.restore([], { findRunner: () => () => 'x' })
    onTestFinished(() => restored.dispose())
    const past = { ...record, status: 'completed', output: {} } as never
    expect(refusal(() => restored.continueTask(past, 'm')).message).toContain(
      'task "gone", whose run owned it, is no longer known',
    )
    expect(restored.getAllTasks()).toEqual([])
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('with a store', () => {
  /** A process on a store, whose subagent `agent` is known. */
  async function onStore(store: ReturnType<typeof memoryStore>) {
    const contexts: RunContext[] = []
    const ends: ((text: string) => void)[] = []
    const run: RunFunction = (_input, context) => {
      contexts.push(context)
      return new Promise((resolve) => {
        ends.push(resolve)
        context.signal.addEventListener('abort', () => resolve({}))
      })
    }
    const retry = { attempts: 3, on: ['interrupted'] } as const
    const findRunner = (name: string) => (name === 'agent' ? { run, retry } : undefined)
    const manager = new AsyncTaskManager({ store, findRunner, clock: createManualClock(5000), graceMs: 0 })
    onTestFinished(() => manager.dispose())
    await manager.recovered
    await tick()
    await tick()
    const row = (id: string) => store.contents().tasks.find((task) => task.id === id)
    return { manager, contexts, ends, row, run: { run, retry } }
  }

  it('U1: an ended task is continued by the next process, also one that was interrupted', async () => {
    const store = memoryStore()
    const first = await onStore(store)
    first.manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'g', owner: 'alice' }, first.run)
    first.manager.launch({ id: 'b', subagentName: 'agent', goalPrompt: 'g' }, first.run.run)
    await tick()
    first.contexts[0]?.setSession('s-1', { cwd: '/work' })
    first.contexts[1]?.setSession('s-2')
    first.ends[0]?.('one')
    await tick()
    expect(first.row('a')).toMatchObject({ record: { session: { id: 's-1', cwd: '/work' } } })
    const copy = store.copy()
    for (const row of copy.contents().tasks) if (row.id === 'b') expect(row.record['session']).toEqual({ id: 's-2' })
    const next = await onStore(copy)
    const { id, owner } = next.manager.continueTask('a', 'go on')
    await tick()
    expect(owner).toBe('alice')
    expect(next.contexts.at(-1)?.previous).toMatchObject({ id: 'a', session: { id: 's-1', cwd: '/work' } })
    expect(next.row(id)).toMatchObject({
      record: { continues: 'a', session: { id: 's-1' } },
      run: { previous: { id: 'a' } },
    })
  })

  it('U1: a continuation that dies with its process is run again as one, and still the only one', async () => {
    const store = memoryStore()
    const first = await onStore(store)
    first.manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'g' }, first.run)
    await tick()
    first.contexts[0]?.setSession('s-1')
    first.ends[0]?.('one')
    await tick()
    const { id } = first.manager.continueTask('a', 'go on')
    await tick()
    const second = await onStore(store.copy())
    expect(second.contexts[0]?.previous).toEqual(first.contexts[1]?.previous)
    expect(second.contexts[0]?.attempt).toBe(2)
    expect(refusal(() => second.manager.continueTask('a', 'm')).message).toContain(`"${id}" already continues it`)
    second.ends[0]?.('two')
    await tick()
    expect(second.manager.getTask(id)).toMatchObject({ status: 'completed', continues: 'a', session: { id: 's-1' } })
    expect(second.row(id)?.run).toBeUndefined()
    const third = await onStore(store.copy())
    expect(third.contexts[0]?.previous?.id).toBe('a')
  })

  it('U1: one that waits for a slot when its process dies has what it continues', async () => {
    const store = memoryStore()
    const first = await onStore(store)
    first.manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'g' }, first.run)
    await tick()
    first.ends[0]?.('one')
    await tick()
    first.manager.pause('main')
    const { id, status } = first.manager.continueTask('a', 'go on')
    await tick()
    expect(status).toBe('queued')
    const second = await onStore(store.copy())
    expect(second.contexts).toEqual([])
    second.manager.resume('main')
    await tick()
    expect(second.contexts[0]).toMatchObject({ taskId: id, previous: { id: 'a', output: { final_message: 'one' } } })
  })

  it('U1: a pruned task is continued by its record of the history, and by its id it is said to be pruned', async () => {
    const store = memoryStore()
    const { manager, ends, run, contexts } = await onStore(store)
    const ids = ['a', ...Array.from({ length: 30 }, (_, index) => `later-${index}`)]
    for (const id of ids) {
      manager.launch({ id, subagentName: 'agent', goalPrompt: `goal of ${id}`, owner: 'alice' }, run)
      await tick()
      ends.at(-1)?.(`end of ${id}`)
      await tick()
      await manager.waitFor([id])
    }
    for (const id of ids) manager.markNotified(id)
    await manager.stored()
    expect(manager.getTask('a')).toBeUndefined()
    expect(refusal(() => manager.continueTask('a', 'm')).message).toMatch(/^task: got "a", .* its record was pruned at/)
    const past = (await manager.history()).tasks.find(({ id }) => id === 'a')!
    const next = manager.continueTask(past, 'm')
    expect(next).toMatchObject({ owner: 'alice', continues: 'a' })
    await tick()
    expect(contexts.at(-1)?.previous).toMatchObject({ goal: 'goal of a', output: { final_message: 'end of a' } })
  })
})

describe('tasks.continue', () => {
  it('U1: returns the handle of the new task', async () => {
    const seen = vi.fn()
    const tasks = createAgentTasks({
      subagents: {
        echo: (request: { readonly goal: string }, context: RunContext) => {
          seen(request, context.previous)
          return `${context.previous?.output?.final_message ?? ''}${request.goal}`
        },
      },
    })
    onTestFinished(() => tasks.dispose())
    const first = tasks.launch('echo', 'one', { context: { secret: 1 } })
    await first.result
    const next = tasks.continue(first.id, ', two')
    expect(await next.result).toEqual({ final_message: 'one, two' })
    expect(next.record.continues).toBe(first.id)
    expect(seen.mock.calls[1]?.[0]).not.toHaveProperty('context')
    const last = tasks.continue(
      (await tasks.history()).tasks.find(({ id }) => id === next.id)!,
      ', three',
    )
    expect(await last.result).toEqual({ final_message: 'one, two, three' })
    expect(tasks.manager.getPendingNotifications()).toEqual([])
    expect(() => tasks.continue('nobody', 'm')).toThrow(/^task: got "nobody"/)
  })
})
