/** What the page counts: health, machines, and instances. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { AsyncTaskManager } from 'agent-tasks'
import { InstanceManager, instanceTool, localInstance, TaskManager } from 'agent-tasks/server'
import { createManualClock } from 'agent-tasks/testing'
import { Health } from '../../../src/page/health.js'
import { PageState } from '../../../src/page/page-state.js'
import { Versions } from '../../../src/page/versioned.js'

const MIB = 1024 * 1024

describe('health', () => {
  const depths = { running: 1, queued: 2, owed: 3 }

  it('has a point for each ten seconds of the last hour', () => {
    let now = 5000
    const health = new Health(
      new Versions(),
      () => now,
      () => depths,
    )
    expect(health.all()).toEqual([{ at: 0, started: 0, completed: 0, failed: 0, cancelled: 0, ...depths }])
    health.start()
    health.end('succeeded', 40)
    now = 32_000
    health.end('failed', 10)
    expect(health.all().map(({ at, started, completed, failed }) => [at, started, completed, failed])).toEqual([
      [0, 1, 1, 0],
      [10_000, 0, 0, 0],
      [20_000, 0, 0, 0],
      [30_000, 0, 0, 1],
    ])
    now = 10 * 3_600_000
    expect(health.all()).toHaveLength(360)
    expect(health.all().at(-1)?.at).toBe(now)
  })

  it('has the latencies that half and 99 % of the tasks did not exceed', () => {
    const health = new Health(
      new Versions(),
      () => 0,
      () => depths,
    )
    for (let ms = 1; ms <= 100; ms += 1) health.end('succeeded', ms)
    expect(health.all()[0]).toMatchObject({ completed: 100, p50: 50, p99: 99 })
    for (let count = 0; count < 5000; count += 1) health.end('stopped', 7)
    expect(health.all()[0]).toMatchObject({ cancelled: 5000, p50: 7, p99: 7 })
  })

  it('knows which points have changed', () => {
    const versions = new Versions()
    let now = 0
    const health = new Health(
      versions,
      () => now,
      () => depths,
    )
    health.start()
    const before = versions.last
    expect(health.since(before)).toEqual([])
    now = 10_000
    health.start()
    expect(health.since(before).map(({ at }) => at)).toEqual([10_000])
  })
})

describe('the machines', () => {
  it('are counted by the states that they are in', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    const instances = new InstanceManager({ clock })
    const tool = instanceTool({
      name: 'hang',
      inputSchema: z.object({}),
      execute: (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
    })
    instances.connect(localInstance({ id: 'calc', tools: [tool], closeGraceMs: 0 }))
    const taskManager = new TaskManager({ instances, clock, abortGraceMs: 0 })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const state = new PageState({ manager, taskManager, maxTasks: 100, maxBytes: MIB, now: () => clock.now() })
    onTestFinished(() => state.stop())
    const submit = () =>
      taskManager.submitTask({ type: 'task_submit', task_name: 'x', commands: [{ tool_name: 'hang' }] })
    const [first] = [submit(), submit()]
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x', timeoutMs: 10, graceMs: 10 })
    await expect.poll(() => state.machines()['lane']).toEqual({ calling: 1 })
    expect(state.machines()).toEqual({
      asyncTask: { running: 1 },
      delivery: {},
      commandTask: { queued: 1, running: 1 },
      lane: { calling: 1 },
      instance: { 'connected.trusted': 1 },
    })
    expect(state.ready().instances).toMatchObject([
      {
        id: 'calc',
        type: 'local',
        state: 'connected',
        queued: 1,
        tools: [{ name: 'hang', inputSchema: { type: 'object' } }],
      },
    ])
    expect(state.ready().instances[0]?.running).toBe(`command:${'taskId' in first ? first.taskId : ''}`)
    expect(state.ready().health.at(-1)).toMatchObject({ running: 2, queued: 1 })
    clock.advance(10)
    expect(state.machines()['asyncTask']).toEqual({ stopping: 1 })
    clock.advance(10)
    expect(state.machines()['asyncTask']).toEqual({ failed: 1 })
    expect(state.journal.get('async:a')?.state).toBe('timed-out')
  })

  it('an instance that is gone is gone from the page', async () => {
    const instances = new InstanceManager()
    instances.connect(localInstance({ id: 'calc', tools: [] }))
    const taskManager = new TaskManager({ instances })
    const state = new PageState({ manager: undefined, taskManager, maxTasks: 100, maxBytes: MIB, now: () => 0 })
    onTestFinished(() => state.stop())
    const before = state.version
    await instances.disconnect('calc')
    expect(state.since(before)?.rest.instances).toEqual([])
    await taskManager.dispose()
    await instances.dispose()
  })
})
