// The numbers of GET /metrics, on a manager of tasks that only emits.
import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import type { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { createMetrics } from '../../../src/server/metrics.js'
import { startTestServer } from './test-server.js'

function createSubject(more: object = {}) {
  const tasks = Object.assign(new EventEmitter(), {
    listTasks: () => [],
    laneDepths: new Map(),
    lateResults: 3,
    ...more,
  })
  const metrics = createMetrics(tasks as unknown as TaskManager, () => 4)
  const progress = (taskId: string, status: string, timestamp: number): void =>
    void tasks.emit('progress', { taskId, status, timestamp })
  const linesOf = (name: string): string[] =>
    metrics
      .render()
      .split('\n')
      .filter((line) => line.startsWith(name))
      .map((line) => line.slice(name.length))
  return { tasks, metrics, progress, linesOf }
}

const DURATION = 'agent_tasks_command_duration_seconds'

it('a histogram counts each command in the bucket of its bound and in all above, with the sum of all', () => {
  const { progress, linesOf } = createSubject()
  // At a bound, between two bounds, above the last one, and with a clock that was set back.
  for (const [started, ended] of [
    [0, 1000],
    [0, 1001],
    [0, 61_000],
    [5, 0],
  ] as const) {
    progress('t', 'running', started)
    progress('t', 'success', ended)
  }
  expect(linesOf(`${DURATION}_bucket{outcome="success",le=`)).toEqual([
    '"0.005"} 1',
    '"0.01"} 1',
    '"0.025"} 1',
    '"0.05"} 1',
    '"0.1"} 1',
    '"0.25"} 1',
    '"0.5"} 1',
    '"1"} 2',
    '"2.5"} 3',
    '"5"} 3',
    '"10"} 3',
    '"30"} 3',
    '"60"} 3',
    '"+Inf"} 4',
  ])
  expect(linesOf(`${DURATION}_sum`)).toEqual(['{outcome="success"} 63.001', '{outcome="error"} 0'])
  expect(linesOf(`${DURATION}_count`)).toEqual(['{outcome="success"} 4', '{outcome="error"} 0'])
})

it('a command is timed from its own start, whatever it reports, and not when it was cancelled or its start is not known', () => {
  const { tasks, progress, linesOf } = createSubject()
  progress('reports', 'running', 0)
  progress('reports', 'running', 400)
  progress('other', 'running', 900)
  progress('reports', 'error', 1000)
  progress('reports', 'running', 5000)
  progress('reports', 'success', 5500)
  progress('reports', 'success', 9000)
  progress('other', 'cancelled', 9000)
  progress('ended', 'running', 0)
  tasks.emit('complete', { taskId: 'ended', status: 'failed' })
  progress('ended', 'success', 9000)
  expect(linesOf(`${DURATION}_sum`)).toEqual(['{outcome="success"} 0.5', '{outcome="error"} 1'])
  expect(linesOf(`${DURATION}_count`)).toEqual(['{outcome="success"} 1', '{outcome="error"} 1'])
})

it('each number has its own name', () => {
  const { tasks, metrics, linesOf } = createSubject({ persistence: { isFailing: true } })
  for (const status of ['completed', 'completed', 'completed', 'failed', 'failed', 'cancelled']) {
    tasks.emit('complete', { taskId: 't', status })
  }
  metrics.droppedFrame()
  metrics.droppedFrame()
  metrics.closedSlowReader()
  metrics.refused('A')
  metrics.refused('B')
  metrics.refused('A')
  expect(linesOf('agent_tasks_settled_total')).toEqual([
    '{status="completed"} 3',
    '{status="failed"} 2',
    '{status="cancelled"} 1',
  ])
  expect(linesOf('agent_tasks_dropped_frames_total')).toEqual([' 2'])
  expect(linesOf('agent_tasks_slow_readers_closed_total')).toEqual([' 1'])
  expect(linesOf('agent_tasks_refused_total')).toEqual(['{code="A"} 2', '{code="B"} 1'])
  expect(linesOf('agent_tasks_late_results_total')).toEqual([' 3'])
  expect(linesOf('agent_tasks_subscribed')).toEqual([' 4'])
  expect(linesOf('agent_tasks_store_failing')).toEqual([' 1'])
  expect(createSubject({ persistence: { isFailing: false } }).linesOf('agent_tasks_store_failing')).toEqual([' 0'])
})

it('the end of a connection counts once, of its kind', () => {
  const { metrics, linesOf } = createSubject()
  const leave = metrics.connected('client')
  metrics.connected('client')
  metrics.connected('event_stream')
  leave()
  leave()
  expect(linesOf('agent_tasks_connections')).toEqual([
    '{kind="client"} 1',
    '{kind="worker"} 0',
    '{kind="event_stream"} 1',
  ])
  expect(metrics.countConnected('client')).toBe(1)
})

it('nothing listens to the manager when they are disposed of', () => {
  const { tasks, metrics } = createSubject()
  expect(tasks.eventNames()).toEqual(['progress', 'complete'])
  metrics.dispose()
  expect(tasks.eventNames()).toEqual([])
})

it('a client that has disconnected is no longer counted', async () => {
  const server = await startTestServer()
  const client = await server.client()
  const count = async () => (await server.call('/health')).body['taskClients']
  expect(await count()).toBe(1)
  client.socket.close()
  while ((await count()) !== 0);
})
