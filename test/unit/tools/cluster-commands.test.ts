/** The tool submit_commands on a cluster: what its calls return, and what the next host on a store goes on with (N7). */
import { describe, expect, it, onTestFinished } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { createAgentTasks } from '../../../src/host/agent-tasks.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import type { InstanceToolContext } from '../../../src/protocol/instance-tools.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { findCommandRunner } from '../../../src/tools/cluster-command-run.js'
import { fakeCluster } from '../../support/cluster-tasks.js'
import { settle } from './tool-host.js'

function setUp() {
  const clock = createManualClock(Date.UTC(2026, 0, 1))
  const instances = new InstanceManager({ clock })
  const commands = new TaskManager({ instances, clock, maxQueueSize: 2 })
  const release: ((value: unknown) => void)[] = []
  const hold = {
    name: 'hold',
    execute: (_input: unknown, { progress, signal }: InstanceToolContext) => {
      progress(1)
      return new Promise((resolve, reject) => {
        release.push(resolve)
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    },
  }
  const fail = {
    name: 'fail',
    execute: () => {
      throw new Error('no such button')
    },
  }
  instances.connect(localInstance({ id: 'w', tools: [hold, fail], clock, closeGraceMs: 0 }))
  const cluster = fakeCluster(commands, instances)
  onTestFinished(async () => {
    await commands.dispose()
    await instances.dispose()
  })
  const host = (store?: Store) => {
    const tasks = createAgentTasks({
      taskManager: cluster.tasks,
      clock,
      maxAsyncTasks: 2,
      ...(store && { store }),
    })
    onTestFinished(() => tasks.dispose())
    const run = (tool_name: string, more: { async?: boolean; signal?: AbortSignal } = {}) => {
      const { signal, ...input } = more
      const call = { task_name: 'Do it', commands: [{ tool_name, args: {}, intention: '' }], ...input }
      return tasks.tools.submit_commands.execute(call, { signal })
    }
    return { run, tasks, manager: tasks.getAsyncTaskManager() }
  }
  return { ...cluster, clock, commands, instances, release, host }
}

const idIn = ({ metadata = {} }: { metadata?: Readonly<Record<string, unknown>> }) => String(metadata['agentId'])

describe('submit_commands on a cluster', () => {
  it('launches when the cluster has the task, and its end is that of the commands', async () => {
    const { host, release, commands } = setUp()
    const { run, manager } = host()
    const launched = await run('hold')
    const [command] = commands.listTasks()
    expect(launched.metadata).toMatchObject({ commandTaskId: command?.id, instanceId: 'w', queuePosition: 1 })
    await settle()
    const id = idIn(launched)
    expect(manager.getTask(id)?.progress).toMatchObject({ total: 1 })
    release[0]?.('done')
    await settle()
    expect(manager.getTask(id)).toMatchObject({ status: 'completed', delivery: 'owed' })
    expect(manager.getTask(id)?.output?.final_message).toContain('1. hold: success: done')
    const failed = await run('fail', { async: false })
    expect(failed.error?.message).toContain('failed at command 1 of 1, fail.')
  })

  it('names the instance that was asked for when the cluster does not say which has it', async () => {
    const { host, getTask } = setUp()
    getTask.mockRejectedValue(new Error('away'))
    const { tools } = host().tasks
    const commands = [{ tool_name: 'hold', args: {}, intention: '' }]
    const named = await tools.submit_commands.execute({ task_name: 'x', instanceId: 'w', commands })
    expect(named.metadata).toMatchObject({ instanceId: 'w' })
    getTask.mockResolvedValue(undefined)
    const unnamed = await tools.submit_commands.execute({ task_name: 'x', commands })
    expect(unnamed.llmContent).toContain('on instance of the cluster')
  })

  it('returns a refusal, in the background and in place, and launches nothing', async () => {
    const { host, instances } = setUp()
    const { run, manager } = host()
    await instances.dispose()
    for (const async of [true, false]) {
      expect((await run('hold', { async })).llmContent).toContain('No instance is connected (NO_INSTANCE)')
    }
    expect(manager.getAllTasks()).toEqual([])
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('keeps its slot while the cluster takes the task, and cancels what a call submitted that was aborted', async () => {
    const { host, submitTask, commands, cancelled } = setUp()
    let take: () => void = () => undefined
    const taken = new Promise<void>((resolve) => (take = resolve))
    submitTask.mockImplementation(async (message) => {
      await taken
      return commands.submitTask(message)
    })
    const { run, manager } = host()
    const aborting = new AbortController()
    const calls = [run('hold', { signal: aborting.signal }), run('hold')]
    expect((await run('hold')).error?.type).toBe('limit_reached')
    aborting.abort()
    take()
    const [aborted, launched] = await Promise.all(calls)
    expect(aborted?.error).toBeDefined()
    expect(launched?.error).toBeUndefined()
    await settle()
    expect(commands.listTasks().map(({ status }) => status)).toEqual(['running', 'cancelled'])
    expect(cancelled).toEqual([commands.listTasks()[1]?.id])
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('cancels the commands of a call in place that is aborted before they were accepted', async () => {
    const { host, submitTask, commands } = setUp()
    let take: () => void = () => undefined
    const taken = new Promise<void>((resolve) => (take = resolve))
    submitTask.mockImplementation(async (message) => {
      await taken
      return commands.submitTask(message)
    })
    const aborting = new AbortController()
    const called = host().run('hold', { async: false, signal: aborting.signal })
    aborting.abort()
    take()
    expect((await called).error?.type).toBe('cancelled')
    await settle()
    expect(commands.listTasks()).toMatchObject([{ status: 'cancelled' }])
  })

  it('cancels the commands of a task that is cancelled before its run has started, and while it runs', async () => {
    const { host, commands } = setUp()
    const { run, manager } = host()
    const launched = await run('hold')
    manager.cancelTask(idIn(launched))
    await settle()
    const second = await run('hold')
    await settle()
    manager.cancelTask(idIn(second))
    await settle()
    expect(commands.listTasks().map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(manager.getTask(idIn(second))).toMatchObject({ status: 'cancelled' })
  })
})

describe('the next host on a store', () => {
  it('N7: follows the commands to their end, and is the only one that owes it', async () => {
    const { host, release } = setUp()
    const store = memoryStore()
    const id = idIn(await host(store).run('hold'))
    await settle()
    const next = host(store.copy())
    expect((await next.manager.recovered).adopted).toEqual([id])
    await settle()
    release[0]?.('done')
    await settle()
    expect(next.manager.getTask(id)).toMatchObject({ status: 'completed', delivery: 'owed' })
  })

  it('N7: cancels the commands', async () => {
    const { host, commands } = setUp()
    const store = memoryStore()
    const id = idIn(await host(store).run('hold'))
    await settle()
    const next = host(store.copy())
    await settle()
    next.manager.cancelTask(id)
    await settle()
    expect(commands.listTasks()).toMatchObject([{ status: 'cancelled' }])
  })

  it('N7: says that the end is not known when the cluster has forgotten it', async () => {
    const { host, tasks } = setUp()
    const store = memoryStore()
    const id = idIn(await host(store).run('hold'))
    await settle()
    tasks.followTask = () => Promise.resolve(undefined)
    const next = host(store.copy())
    await settle()
    expect(next.manager.getTask(id)).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED', delivery: 'owed' })
    expect(next.manager.getTask(id)?.error).toContain('its end is not known')
  })

  it('N7: has a task that failed without a cluster', async () => {
    const { host, clock } = setUp()
    const store = memoryStore()
    const id = idIn(await host(store).run('hold'))
    const next = createAgentTasks({ store: store.copy(), clock })
    onTestFinished(() => next.dispose())
    expect(next.getAsyncTaskManager().getTask(id)).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
  })

  it('finds what goes on with them by a name that no subagent has', () => {
    const { tasks } = setUp()
    const find = findCommandRunner(tasks)
    expect(find('Do it')).toBeUndefined()
    expect(find('submit_commands of a cluster')).toHaveProperty('survivesHost', true)
  })
})
