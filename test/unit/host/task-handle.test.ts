/** The handle of a task: who gets its result, and what a handle leaves behind. */
import { taskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  createAgentTasks,
  TaskCancelledError,
  TaskFailedError,
  type RunContext,
  type SubagentRequest,
} from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { watchRejections } from '../../../src/testing/unhandled-rejections.js'
import { breakableStore } from '../../support/breakable-store.js'
import { deafMachine, setUp, settle } from './launched-tasks.js'
import { waitFor } from '../../support/wait-for.js'
import { DisposedError, InvalidInputError } from '../../../src/errors.js'

describe('a result that is read before the end', () => {
  it('H1: is claimed at once, and delivered by the handle alone', async () => {
    const triggerAgentTurn = vi.fn()
    const { tasks, manager, clock, runs, owed } = setUp({ isAgentBusy: () => false, triggerAgentTurn })
    const { id, result } = tasks.launch('worker', 'work')
    await settle()
    runs[0]?.resolve('done')
    await expect(result).resolves.toEqual({ final_message: 'done' })
    expect(manager.getTask(id)?.delivery).toBe('delivered')
    expect(owed()).toEqual([])
    clock.advance(60_000)
    await settle()
    expect(triggerAgentTurn).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })

  it('H1: is claimed before a slow loop over the events, and rejects nothing until it is awaited', async () => {
    const rejections = watchRejections()
    const triggerAgentTurn = vi.fn()
    const { tasks, clock, runs } = setUp({ isAgentBusy: () => false, triggerAgentTurn })
    const handle = tasks.launch('worker', 'work')
    const { result } = handle
    await settle()
    runs[0]?.reject(new Error('broken'))
    for await (const event of handle) {
      expect(event.type).toBe('end')
      await settle()
      clock.advance(60_000)
      await settle()
    }
    expect(await rejections.first()).toBeUndefined()
    rejections.stop()
    await expect(result).rejects.toBeInstanceOf(TaskFailedError)
    expect(triggerAgentTurn).not.toHaveBeenCalled()
  })

  it('H1: is one promise, however often it is read', async () => {
    const { tasks, manager } = setUp()
    const handle = tasks.launch('echo', 'hi')
    const { result } = handle
    expect(handle.result).toBe(result)
    await result
    expect(handle.result).toBe(result)
    expect(manager.actor.getSnapshot().leased).toBe(0)
  })

  it('H1: rejects with the error of a task that failed, and is delivered', async () => {
    const { tasks, manager, runs } = setUp()
    const { id, result } = tasks.launch('worker', 'work')
    await settle()
    const reason = Object.assign(new TypeError('broken'), { code: 'E1' })
    runs[0]?.reject(reason)
    const error: unknown = await result.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TaskFailedError)
    expect(error).toMatchObject({
      name: 'TaskFailedError',
      code: 'TASK_FAILED',
      message: 'broken',
      cause: reason,
      record: { id, status: 'failed', errorName: 'TypeError', errorCode: 'E1' },
    })
    expect(manager.getTask(id)?.delivery).toBe('delivered')
  })

  it.each([false, true])(
    'H1: rejects when the task is cancelled, with the reason (notifyCancelled: %s)',
    async (notifyCancelled) => {
      const { tasks, manager } = setUp({ notifyCancelled })
      const handle = tasks.launch('worker', 'work')
      const { result } = handle
      expect(handle.cancel('not needed')).toBe(true)
      expect(handle.cancel()).toBe(false)
      const error: unknown = await result.catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(TaskCancelledError)
      expect(error).toMatchObject({
        code: 'TASK_CANCELLED',
        message: `Task ${handle.id} was cancelled, because: not needed`,
        record: { id: handle.id, cancelReason: 'not needed' },
      })
      expect(manager.getTask(handle.id)?.delivery).toBe(notifyCancelled ? 'delivered' : 'none')
      expect(manager.actor.getSnapshot()).toMatchObject({ owed: 0, leased: 0 })
    },
  )

  it('H1: rejects when everything is disposed', async () => {
    const { tasks } = setUp()
    const { result } = tasks.launch('worker', 'work')
    const rejected = expect(result).rejects.toBeInstanceOf(TaskCancelledError)
    await tasks.dispose()
    await rejected
  })

  it('H1: resolves also when everything is disposed right after the end', async () => {
    const { tasks, runs } = setUp()
    const { result } = tasks.launch('worker', 'work')
    await settle()
    tasks.manager.onTaskCompleted(() => void tasks.dispose())
    runs[0]?.resolve('done')
    await expect(result).resolves.toEqual({ final_message: 'done' })
  })

  it('H1: rejects on dispose also when a machine of the host ignores the cancellation', async () => {
    const { tasks, runs } = setUp({ machines: { task: deafMachine } })
    const { result } = tasks.launch('worker', 'work')
    const rejected = expect(result).rejects.toBeInstanceOf(DisposedError)
    await settle()
    const disposed = tasks.dispose()
    await rejected
    runs[0]?.resolve('')
    await disposed
  })
})

describe('a result that is read after the end', () => {
  it('H1: is the output of the record, and is delivered at once when it was owed', async () => {
    const { tasks, runs, owed } = setUp()
    const handle = tasks.launch('worker', 'work')
    await settle()
    runs[0]?.resolve('done')
    await settle()
    expect(owed()).toEqual([handle.id])
    const { result } = handle
    expect(owed()).toEqual([])
    expect(handle.record.delivery).toBe('delivered')
    expect(await result).toBe(handle.record.output)
  })

  it.each([false, true])('H1: leaves it to a message that holds it (accepted: %s)', async (accepted) => {
    const { tasks, owed } = setUp()
    const handle = tasks.launch('echo', 'hi')
    await settle()
    expect(tasks.beforeTurn().reminder?.taskIds).toEqual([handle.id])
    await expect(handle.result).resolves.toEqual({ final_message: 'hi' })
    expect(handle.record.delivery).toBe('leased')
    tasks.afterTurn({ accepted })
    expect(handle.record.delivery).toBe(accepted ? 'delivered' : 'owed')
    expect(owed()).toEqual(accepted ? [] : [handle.id])
  })

  it('H1: changes nothing when a message has delivered it', async () => {
    const { tasks, manager } = setUp()
    const handle = tasks.launch('echo', 'hi')
    await settle()
    await tasks.withTurn(() => undefined)
    const seq = manager.actor.getSnapshot().seq
    await expect(handle.result).resolves.toEqual({ final_message: 'hi' })
    expect(manager.actor.getSnapshot().seq).toBe(seq)
  })

  it('H1: survives the pruning of its record, and of an id that another task has by then', async () => {
    const { tasks, manager, owed } = setUp({ maxAsyncTasks: 0 })
    tasks.setSetting('task-max-async', 1)
    const handle = tasks.launch('echo', 'first', { id: 'same' })
    await settle()
    manager.markNotified('same')
    tasks.setSetting('task-max-async', 0)
    expect(manager.getTask('same')).toBeUndefined()
    tasks.setSetting('task-max-async', 1)
    const other = tasks.launch('worker', 'second', { id: 'same' })
    expect(handle.cancel()).toBe(false)
    expect(handle.send('hi')).toEqual({ sent: false, reason: 'Task same has ended: it is completed.' })
    expect(handle.answer('q1', 'yes')).toBe(false)
    const seen = vi.fn<(event: unknown) => void>()
    handle.output$.subscribe({ next: seen, complete: () => seen('end') })
    expect(seen).toHaveBeenCalledExactlyOnceWith('end')
    await expect(handle.result).resolves.toEqual({ final_message: 'first' })
    expect(other.record.status).toBe('running')
    expect(owed()).toEqual([])
  })

  it('H1: of a record that was pruned takes no result of the task that has its id by then', async () => {
    const { tasks, manager, owed } = setUp({ maxAsyncTasks: 1 })
    const handle = tasks.launch('echo', 'first', { id: 'same' })
    await settle()
    manager.markNotified('same')
    tasks.setSetting('task-max-async', 0)
    tasks.setSetting('task-max-async', 1)
    tasks.launch('echo', 'second', { id: 'same' })
    await settle()
    expect(owed()).toEqual(['same'])
    await expect(handle.result).resolves.toEqual({ final_message: 'first' })
    expect(owed()).toEqual(['same'])
  })

  it('H1: is there after dispose', async () => {
    const { tasks } = setUp()
    const [ended, running] = [tasks.launch('echo', 'hi'), tasks.launch('worker', 'work')]
    await settle()
    await tasks.dispose()
    await expect(ended.result).resolves.toEqual({ final_message: 'hi' })
    await expect(running.result).rejects.toBeInstanceOf(TaskCancelledError)
  })
})

describe('a result that is never read', () => {
  it('H1: is delivered by a message, and rejects nothing', async () => {
    const rejections = watchRejections()
    const triggerAgentTurn = vi.fn()
    const { tasks, clock, runs } = setUp({ isAgentBusy: () => false, triggerAgentTurn })
    const failing = tasks.launch('worker', 'work')
    const cancelled = tasks.launch('worker', 'work')
    await settle()
    runs[0]?.reject(new Error('broken'))
    cancelled.cancel()
    await settle()
    clock.advance(1)
    await settle()
    expect(triggerAgentTurn).toHaveBeenCalledOnce()
    expect(failing.record.delivery).toBe('delivered')
    await tasks.dispose()
    expect(await rejections.first()).toBeUndefined()
    rejections.stop()
  })

  it('H1: is not taken by a look at the handle', async () => {
    const { tasks, owed } = setUp()
    const handle = tasks.launch('echo', 'hi')
    expect(JSON.parse(JSON.stringify(handle))).toEqual({ id: handle.id })
    expect(Object.keys({ ...handle })).toEqual(['id'])
    await settle()
    expect(owed()).toEqual([handle.id])
  })
})

describe('a host with a store', () => {
  it.each(['before it was returned', 'after it was returned'])(
    'H1: that crashes owes its owner a result that was read: %s',
    async (when) => {
      const store = memoryStore()
      const { tasks, runs } = setUp({ store })
      const handle = tasks.launch('worker', 'work')
      const { result } = handle
      await settle()
      runs[0]?.resolve('done')
      if (when === 'before it was returned') await waitFor(() => expect(handle.record.status).toBe('completed'))
      else await result
      const next = createAgentTasks({ store: store.copy() })
      await next.recovered
      expect(next.manager.getPendingNotifications()).toMatchObject([
        { id: handle.id, output: { final_message: 'done' }, isRepeat: true },
      ])
      await next.dispose()
      await result
    },
  )

  it.each(['claimed before its end', 'read after its end'])(
    'H1: has an id for a result that was %s, and the next host does not deliver what is in the transcript',
    async (when) => {
      const store = memoryStore()
      const { tasks, runs } = setUp({ store })
      const handle = tasks.launch('worker', 'work')
      const early = when === 'claimed before its end' ? handle.result : undefined
      expect(handle.deliveryId).toBeUndefined()
      await settle()
      runs[0]?.resolve('done')
      await waitFor(() => expect(handle.record.status).toBe('completed'))
      await (early ?? handle.result)
      await tasks.manager.stored()
      const asked: string[] = []
      const next = createAgentTasks({
        store: store.copy(),
        wasDelivered: (deliveryId) => {
          asked.push(deliveryId)
          return deliveryId === handle.deliveryId
        },
      })
      await next.recovered
      expect(asked).toEqual([handle.deliveryId])
      expect(next.manager.getPendingNotifications()).toEqual([])
      await next.dispose()
    },
  )

  it('H1: that cannot be written owes the result, which the next read takes', async () => {
    const { store, state } = breakableStore()
    const { tasks, runs, owed } = setUp({ store })
    const handle = tasks.launch('worker', 'work')
    await settle()
    runs[0]?.resolve('done')
    await settle()
    // What has to be written meanwhile.
    tasks.launch('worker', 'more')
    state.isBroken = true
    tasks.manager.cancelAll()
    await expect(handle.result).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(owed()).toEqual([handle.id])
    state.isBroken = false
    await expect(handle.result).resolves.toEqual({ final_message: 'done' })
    expect(owed()).toEqual([])
  })
})

describe('a handle', () => {
  it('H2: sends messages to its run, answers its questions, and follows its output', async () => {
    const talk = {
      takesMessages: true,
      run: async (_request: SubagentRequest, context: RunContext) => {
        context.append('ready')
        const { content } = await context.ask('Where to?')
        for await (const message of context.messages) return `${String(content?.['answer'])}, ${message}`
        return ''
      },
    }
    const mute = () => new Promise<string>(() => undefined)
    const tasks = createAgentTasks({ subagents: { talk, mute }, graceMs: 0 })
    onTestFinished(() => tasks.dispose())
    const [handle, silent] = [tasks.launch('talk', 'talk'), tasks.launch('mute', 'work')]
    await settle()
    const written = vi.fn<(text: string) => void>()
    handle.output$.subscribe(({ text }) => written(text))
    expect(written).toHaveBeenCalledExactlyOnceWith('ready')
    const id = handle.record.questions?.[0]?.id ?? ''
    expect(() => handle.answer(id, { action: 'accept', content: { answer: 5 } })).toThrow(InvalidInputError)
    expect(handle.answer(id, 'north')).toBe(true)
    expect(handle.answer(id, 'south')).toBe(false)
    expect(handle.send('hurry')).toEqual({ sent: true })
    expect(silent.send('hurry')).toEqual({ sent: false, reason: `Task "${silent.id}" takes no messages.` })
    expect(() => handle.send('')).toThrow(InvalidInputError)
    expect(() => handle.cancel(5 as never)).toThrow(InvalidInputError)
    await expect(handle.result).resolves.toEqual({ final_message: 'north, hurry' })
  })

  it('A9, H1: leaves no watcher and no lease behind when its result has settled', async () => {
    const { tasks, manager, runs } = setUp()
    const watchers = manager.registry.use(taskWatchers)
    const [added, removed] = [vi.spyOn(watchers, 'add'), vi.spyOn(watchers, 'remove')]
    const handle = tasks.launch('worker', 'work')
    expect(added).not.toHaveBeenCalled()
    const { result } = handle
    await settle()
    expect(added).toHaveBeenCalledOnce()
    runs[0]?.resolve('done')
    await result
    expect(removed.mock.calls).toEqual(added.mock.calls)
    expect(manager.actor.getSnapshot()).toMatchObject({ owed: 0, leased: 0 })
  })
})
