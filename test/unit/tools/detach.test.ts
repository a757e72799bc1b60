/** A call that runs a task in place, and returns because its task is moved to the background. */
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { registryOf } from '../../../src/async-tasks/manager.js'
import { taskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { tick } from '../../support/limited-tasks.js'
import { checkProperty } from '../../support/property.js'
import { controlledSubagent, settle } from './tool-host.js'
import { InvalidSettingError } from '../../../src/errors.js'

const RESULT = 'the only result'

const onError = (): void => undefined

function createHost(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const { subagent, runs } = controlledSubagent()
  const tasks = createAgentTasks({
    clock,
    subagents: { a: subagent },
    maxAsyncTasks: 1,
    graceMs: 0,
    onError,
    ...options,
  })
  const { manager } = tasks
  const registry = registryOf(manager)
  const watchers = registry.use(taskWatchers)
  const [added, removed] = [vi.spyOn(watchers, 'add'), vi.spyOn(watchers, 'remove')]
  const call = (more: object = {}, context: object = {}) =>
    tasks.tools.task.execute({ subagent_name: 'a', goal_prompt: 'g', ...more }, context)
  return {
    tasks,
    manager,
    clock,
    runs,
    call,
    last: () => manager.getAllTasks().at(-1)!,
    /** What a call leaves behind: watchers that were not removed, and slots. */
    left: () => ({
      watchers: added.mock.calls.filter((args) => !removed.mock.calls.some((other) => args[1] === other[1])).length,
      task: registry.pools.task.inUse,
      foreground: registry.pools.foreground.inUse,
      leased: manager.actor.getSnapshot().leased,
    }),
    close: async () => {
      for (const run of runs) run.finish({})
      await tick()
      await tasks.dispose()
      expect(clock.pending).toBe(0)
    },
  }
}

function setUp(options?: AgentTasksOptions) {
  const host = createHost(options)
  onTestFinished(host.close)
  return host
}

const nothingLeft = { watchers: 0, task: 0, foreground: 0, leased: 0 }

describe('a call whose task is detached', () => {
  it('F14: returns at once with the id, says so, and its result is owed', async () => {
    const { tasks, manager, runs, call, last, left } = setUp({ backgroundAfterSeconds: 10 })
    const { signal } = new AbortController()
    const listening = vi.spyOn(signal, 'removeEventListener')
    const pending = call({}, { signal })
    await settle()
    const { id } = last()
    expect(tasks.detach(id)).toEqual({ detached: true })
    const { llmContent, metadata, error } = await pending
    expect(llmContent).toBe(
      `Task ${id} continues in the background: it was moved there while this call waited for it. Its result will be ` +
        'delivered to you when it has ended: do not poll for it.',
    )
    expect(metadata).toMatchObject({ agentId: id, async: true, status: 'running' })
    expect(error).toBeUndefined()
    expect(left()).toEqual({ ...nothingLeft, task: 1 })
    expect(listening).toHaveBeenCalled()
    runs[0]?.finish({ final_message: RESULT })
    await settle()
    expect(manager.getPendingNotifications()).toMatchObject([{ id, output: { final_message: RESULT } }])
    expect(left()).toEqual(nothingLeft)
  })

  it('F14: goes on waiting when no slot is free', async () => {
    const { tasks, runs, call, last, left } = setUp()
    await call({ async: true })
    const pending = call()
    await settle()
    expect(() => tasks.detach(last().id)).toThrow('Max async tasks (1) reached')
    runs[1]?.finish({ final_message: RESULT })
    expect((await pending).llmContent).toContain(RESULT)
    expect(left()).toEqual({ ...nothingLeft, task: 1 })
  })

  it('F14: is not cancelled by the abort of its call afterwards', async () => {
    const { tasks, call, last } = setUp()
    const abort = new AbortController()
    const pending = call({}, { signal: abort.signal })
    await settle()
    tasks.detach(last().id)
    await pending
    abort.abort()
    expect(last().status).toBe('running')
  })

  it.each(['end', 'detach'])('F14: that ends at the same moment is delivered once: first %s', async (first) => {
    const { tasks, manager, call, last, left } = setUp()
    const pending = call()
    await settle()
    const { id } = last()
    const acts = [() => manager.completeTask(id, { final_message: RESULT }), () => tasks.detach(id).detached]
    const done = (first === 'end' ? acts : acts.reverse()).map((act) => act())
    expect(done).toEqual([true, first === 'detach'])
    const { llmContent } = await pending
    // The call reads what has ended when it returns: in either order the result is in it.
    expect(llmContent).toContain(RESULT)
    expect(manager.getPendingNotifications()).toEqual([])
    expect(left()).toMatchObject({ watchers: 0, leased: 0 })
  })

  it('F14: each order of an end, a detachment, an abort and the time delivers the result once, and leaves nothing', async () => {
    const step = fc.constantFrom('detach', 'end', 'time', 'turn', 'turns', 'abandon')
    const orders = fc.record({
      steps: fc.array(step, { maxLength: 8 }),
      isStored: fc.boolean(),
      isFull: fc.boolean(),
    })
    const property = fc.asyncProperty(orders, async ({ steps, isStored, isFull }) => {
      const host = createHost({ backgroundAfterSeconds: 10, ...(isStored && { store: memoryStore() }) })
      const { tasks, manager, clock, runs, call, left } = host
      await tasks.recovered
      if (isFull) await call({ async: true })
      const abandoned = new AbortController()
      const pending = call({}, { detach: abandoned.signal })
      await tick()
      const run = runs.at(-1)
      const { id } = manager.getAllTasks().at(-1)!
      for (const each of [...steps, 'end', 'turns'] as const) {
        if (each === 'detach') {
          try {
            tasks.detach(id)
          } catch {
            expect(isFull).toBe(true)
          }
        } else if (each === 'end') run?.finish({ final_message: RESULT })
        else if (each === 'time') clock.advance(10_000)
        else if (each === 'abandon') abandoned.abort()
        else if (each === 'turn') await Promise.resolve()
        else await tick()
      }
      const { llmContent } = await pending
      await tick()
      const owed = manager.getPendingNotifications().filter((task) => task.id === id)
      expect([llmContent.includes(RESULT), owed.length]).toEqual(owed.length === 0 ? [true, 0] : [false, 1])
      expect(left()).toEqual({ ...nothingLeft, task: isFull ? 1 : 0 })
      await host.close()
    })
    await checkProperty('one delivery', property, { numRuns: 150 })
  })
})

describe('the time after which a task continues in the background', () => {
  it('F14: detaches in the same way, and may exceed the limit', async () => {
    const { manager, clock, call, last, left } = setUp({ backgroundAfterSeconds: 10 })
    await call({ async: true })
    const pending = call()
    await settle()
    clock.advance(10_000)
    expect((await pending).llmContent).toContain(
      'has not ended within 10 s: it continues in the background. Its result',
    )
    expect(last()).not.toHaveProperty('isForeground')
    expect(left()).toEqual({ ...nothingLeft, task: 2, foreground: 1 })
    expect(manager.canLaunchAsync().allowed).toBe(false)
  })

  it.each([
    [undefined, 5],
    [10, 5],
    [3, 3],
  ])('F14: is that of the option (%s s) or the shorter one of the call (5 s): %s s', async (option, seconds) => {
    const { clock, call, last } = setUp(option === undefined ? {} : { backgroundAfterSeconds: option })
    const pending = call({ background_after_seconds: 5 })
    await settle()
    clock.advance(seconds * 1000 - 1)
    await settle()
    expect(last().isForeground).toBe(true)
    clock.advance(1)
    expect((await pending).llmContent).toContain(`within ${seconds} s`)
  })

  it('F14: is checked, in a call as in the option', async () => {
    const { call, manager } = setUp()
    expect(await call({ background_after_seconds: 0 })).toMatchObject({
      error: { type: 'parameter_validation', message: expect.stringContaining('a number of seconds > 0') as string },
    })
    expect(manager.getAllTasks()).toEqual([])
    expect(() => createHost({ backgroundAfterSeconds: 0 })).toThrow(InvalidSettingError)
  })
})

describe('a call that returns before its task has ended', () => {
  it('F14: leaves it in the background, with a slot, also when it asks a question', async () => {
    const { runs, call, last, left } = setUp()
    const pending = call()
    await settle()
    const { context } = await runs[0]!.started
    void context.ask('Which one?').catch(() => undefined)
    expect((await pending).llmContent).toContain('waits for an answer, and continues in the background')
    expect(last()).not.toHaveProperty('isForeground')
    expect(left()).toEqual({ ...nothingLeft, task: 1 })
  })

  it('F14: leaves it in the background, with a slot, also when it is aborted and the task is kept', async () => {
    const { call, last, left } = setUp({ onForegroundAbort: 'keep' })
    const abort = new AbortController()
    const pending = call({}, { signal: abort.signal })
    await settle()
    abort.abort()
    expect((await pending).error?.type).toBe('aborted')
    expect(last()).not.toHaveProperty('isForeground')
    expect(left()).toEqual({ ...nothingLeft, task: 1 })
  })
})
