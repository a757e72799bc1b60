/** Real runs through Stately's own relay and receiver: the tree of actors, their definitions, events and snapshots. */
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createMachine, type AnyStateMachine } from 'xstate'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import {
  asyncTaskMachine,
  commandTaskMachine,
  deliveryMachine,
  instanceMachine,
  laneMachine,
} from '../../../../machines/index.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { createCommandHost } from '../../../support/command-host.js'
import { startTestServer, taskOf } from '../../server/test-server.js'
import { flushTo, inspectorFor, storyOf, treeOf } from './inspected.js'
import type { RegistrySnapshot } from '../../../../machines/registry-snapshot.js'

it('shows the registry with its tasks, and its deliveries, in the order of what happened', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector, onError } = inspectorFor(relay.url)
  const turns: string[] = []
  const agent = createAgentTasks({
    inspect: inspector,
    isAgentBusy: () => false,
    triggerAgentTurn: (text) => void turns.push(text),
  })
  const manager = agent.getAsyncTaskManager()
  for (const id of ['a', 'b']) {
    manager.launch({ id, subagentName: 'helper', goalPrompt: 'do' }, () => ({ final_message: 'ok' }))
  }
  await manager.onIdle()
  await agent.dispose()
  await flushTo(inspector, received)

  expect(turns).toHaveLength(1)
  expect(onError).not.toHaveBeenCalled()
  expect(treeOf(received)).toEqual([
    'registry',
    'delivery.main',
    'registry > task.a',
    'registry > task.b',
    'delivery.main > deliver',
  ])
  expect(storyOf(received, 'task.a')).toEqual([
    'made {"active":"running"}',
    'xstate.init',
    'is {"active":"running"}',
    'task.complete',
    'is "completed"',
  ])
  expect(storyOf(received, 'registry').filter((what) => what.startsWith('xstate.done.actor.task.'))).toEqual([
    'xstate.done.actor.task.a',
    'xstate.done.actor.task.b',
  ])
  expect(storyOf(received, 'delivery.main')).toEqual(
    expect.arrayContaining([
      'made {"holding":{"gathering":"quiet"}}',
      'is {"delivering":"attended"}',
      'delivery.accepted',
      'lease.ended',
      'is "detached"',
    ]),
  )
  const roots = new Set(received.messages.map(({ rootId }) => rootId))
  const actors = received.messages.flatMap((message) => (message.type === '@xstate.actor' ? [message] : []))
  const tops = actors.filter(({ name }) => name === 'registry' || name === 'delivery.main')
  expect(roots).toEqual(new Set(tops.map(({ sessionId }) => sessionId)))
})

it('shows the sender of an event: a task that ends sends its done event to the registry', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const manager = new AsyncTaskManager({ inspect: inspector })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  manager.completeTask('a', {})
  await manager.dispose()
  await flushTo(inspector, received)
  const sessionOf = (name: string) =>
    received.messages.find((message) => message.type === '@xstate.actor' && message.name === name)?.sessionId
  const done = received.messages.find(
    (message) => message.type === '@xstate.event' && message.event.type === 'xstate.done.actor.task.a',
  )
  expect(done).toMatchObject({ sourceId: sessionOf('task.a'), sessionId: sessionOf('registry') })
})

it("shows the registry's counts as they were at each step, although its ledger changes in place", async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const manager = new AsyncTaskManager({ inspect: inspector })
  // Handlers run before the inspector gets the events, so one batch has several steps.
  manager.onTaskCompleted(() => void manager.completeTask('b', {}))
  for (const id of ['a', 'b']) {
    manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  }
  manager.completeTask('a', {})
  await manager.dispose()
  await flushTo(inspector, received)
  const counts = received.messages.flatMap((message) =>
    message.type === '@xstate.snapshot' && message.event.type !== 'xstate.init'
      ? [message.snapshot as Partial<RegistrySnapshot>]
      : [],
  )
  expect(counts.filter(({ phase }) => phase !== undefined).map(({ running, owed }) => [running, owed])).toEqual([
    [1, 0],
    [2, 0],
    [1, 1],
    [0, 2],
    [0, 2],
  ])
})

it('shows the lanes and the tasks under one parent, and the instance', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const server = await startTestServer({ inspect: inspector })
  const first = await server.post('/tasks', taskOf('add', 'echo'))
  const second = await server.post('/tasks', taskOf('blow'))
  expect([first.status, second.status]).toEqual([201, 201])
  const ids = [first, second].map(({ body }) => String(body['taskId']))
  await received.until(
    (message) => message.type === '@xstate.event' && message.event.type === `xstate.done.actor.task.${ids[1]}`,
  )
  await server.close({ drainMs: 0 })
  await flushTo(inspector, received)
  // A lane that has nothing to do vanishes, and there may be another for the second task.
  const tree = [...new Set(treeOf(received))]
  expect(tree).toEqual([
    'command-tasks',
    'instance.calc',
    'command-tasks > lane.calc',
    `command-tasks > task.${ids[0]}`,
    `command-tasks > task.${ids[1]}`,
  ])
  expect(storyOf(received, `task.${ids[0]}`)).toEqual([
    'made "queued"',
    'xstate.init',
    'is "queued"',
    'task.start',
    'is "running"',
    'command.succeeded',
    'is "running"',
    'command.succeeded',
    'is "completed"',
  ])
  expect(storyOf(received, `task.${ids[1]}`).slice(-2)).toEqual(['command.failed', 'is "failed"'])
  expect(storyOf(received, 'instance.calc')).toEqual([
    'made {"connecting":"unhurried"}',
    'xstate.init',
    'is {"connecting":"unhurried"}',
    'connection.opened',
    'is {"connected":"trusted"}',
    'instance.disconnect',
    'is "disconnected"',
  ])
})

it('shows a lane stop when it is empty', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const host = createCommandHost({ inspect: inspector })
  host.connect('one')
  host.submit('a')
  await host.settle()
  host.call('a').finish()
  await host.settle()
  await host.dispose()
  await flushTo(inspector, received)
  expect(storyOf(received, 'lane.one')).toEqual([
    'made "idle"',
    'xstate.init',
    'is "idle"',
    'lane.wake',
    'is "calling"',
    'call.settled',
    'is "idle"',
    'is "idle"',
  ])
  const lane = received.messages.find((message) => message.type === '@xstate.actor' && message.name === 'lane.one')
  const last = received.messages.findLast(({ sessionId }) => sessionId === lane?.sessionId)
  expect(last).toMatchObject({ type: '@xstate.snapshot', snapshot: { status: 'stopped' } })
})

it('gives each actor the definition of its machine, from which XState builds the same machine', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const agent = createAgentTasks({ inspect: inspector, isAgentBusy: () => false, triggerAgentTurn: () => undefined })
  agent.getAsyncTaskManager().launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, () => ({}))
  await agent.getAsyncTaskManager().onIdle()
  await agent.dispose()
  const host = createCommandHost()
  onTestFinished(async () => {
    await host.dispose()
  })
  const server = await startTestServer({ inspect: inspector })
  await server.post('/tasks', taskOf('add'))
  await setImmediate()
  await server.close({ drainMs: 0 })
  await flushTo(inspector, received)
  const drawn = new Map(
    received.messages.flatMap((message) => {
      if (message.type !== '@xstate.actor') return []
      const config = JSON.parse(String(message.definition)) as AnyStateMachine['config'] & { id: string }
      return config.states === undefined ? [] : [[config.id, chartOf(createMachine(config))]]
    }),
  )
  const machines = [asyncTaskMachine, deliveryMachine, laneMachine, commandTaskMachine, instanceMachine]
  expect(new Map(machines.map((machine) => [machine.id, chartOf(machine)]))).toEqual(drawn)
})

/** A machine's definition as JSON, without the parts that are functions. */
function chartOf(machine: { readonly definition: unknown }): unknown {
  return JSON.parse(
    JSON.stringify(machine.definition, (key, value: unknown) =>
      key === 'context' || key === 'input' || key === 'output' || key === 'version' ? undefined : value,
    ),
  )
}
