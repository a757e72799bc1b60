/** A worker that is still busy with calls of an earlier connection: S3 holds across connections and restarts. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { digestOf } from '../../../src/command-tasks/instances/websocket-instance.js'
import { registerWorker, restoreWorker } from '../../../src/command-tasks/instances/worker-socket.js'
import { InstanceManager, TaskManager } from '../../../src/server/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { connectFakeWorker, type FakeWorker } from '../../support/fake-worker.js'

const GRACE_MS = 2000
const task = { task_name: 'a task', commands: [{ tool_name: 'click', timeout: 100 }] }

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate()
}
const callsOf = ({ heard }: FakeWorker) =>
  heard.flatMap((message) => (message.type === 'tool_call' ? [message.callId] : []))
const cancelsOf = ({ heard }: FakeWorker) =>
  heard.flatMap((message) => (message.type === 'tool_cancel' ? [message.callId] : []))

/** A task in flight and one in the queue, and what a restart finds. */
function busyServer() {
  const clock = createManualClock()
  const store = memoryStore()
  const instances = new InstanceManager({ clock })
  const tasks = new TaskManager({ clock, instances, store, onError: () => undefined })
  const options = { clock, websocketUrl: 'ws://x', cancelGraceMs: GRACE_MS }
  const registration = registerWorker(instances, { instanceId: 'w' }, options)
  const stored = { id: 'w', secretSha256: digestOf(registration.secret).toString('hex'), registration: {} }
  const first = connectFakeWorker(instances, registration, { clock })
  first.hello()
  const ids = [tasks.submitTask({ ...task }), tasks.submitTask({ ...task })].map((answer) =>
    'taskId' in answer ? answer.taskId : '',
  )
  const restart = () => {
    const next = new InstanceManager({ clock })
    const nextTasks = new TaskManager({ clock, instances: next, store: store.copy(), onError: () => undefined })
    restoreWorker(next, stored, { clock, connectTimeoutMs: 90_000, cancelGraceMs: GRACE_MS })
    const worker = connectFakeWorker(next, registration, { clock })
    onTestFinished(async () => {
      await Promise.all([nextTasks.dispose(), next.dispose()])
    })
    return { instances: next, tasks: nextTasks, worker }
  }
  onTestFinished(async () => {
    await Promise.all([tasks.dispose(), instances.dispose()])
  })
  return { clock, tasks, instances, registration, first, ids, restart }
}

describe('a worker whose hello names calls in flight', () => {
  it('S3, K12: gets the next command of the queue when they have ended', async () => {
    const { first, restart, ids } = busyServer()
    await settle()
    const [inFlight = ''] = callsOf(first)
    const { worker, tasks } = restart()
    worker.hello([inFlight, 'other'])
    await settle()
    expect(cancelsOf(worker)).toEqual([inFlight, 'other'])
    expect(callsOf(worker)).toEqual([])
    worker.say({ type: 'tool_error', callId: inFlight, code: 'CANCELLED', message: 'stopped' })
    await settle()
    expect(callsOf(worker)).toEqual([])
    worker.say({ type: 'tool_result', callId: 'other', result: { content: [] } })
    await settle()
    expect(callsOf(worker)).toHaveLength(1)
    expect(callsOf(worker)).not.toContain(inFlight)
    expect(tasks.lateResults).toBe(1)
    expect(ids.map((id) => tasks.getTask(id)?.status)).toEqual(['failed', 'running'])
  })

  it('S3, K12: gets the next command when their grace has passed, with its whole time limit', async () => {
    const { clock, first, restart, ids } = busyServer()
    await settle()
    const { worker, tasks } = restart()
    worker.hello(callsOf(first))
    clock.advance(GRACE_MS - 1)
    await settle()
    expect(callsOf(worker)).toEqual([])
    clock.advance(1)
    await settle()
    expect(callsOf(worker)).toHaveLength(1)
    clock.advance(99)
    await settle()
    expect(tasks.getTask(ids[1] ?? '')?.status).toBe('running')
  })

  it('S3: waits as well when it takes over from its own connection', async () => {
    const { first, registration, instances, tasks, clock, ids } = busyServer()
    await settle()
    const second = connectFakeWorker(instances, registration, { clock })
    second.hello(callsOf(first))
    await settle()
    expect(tasks.getTask(ids[0] ?? '')?.status).toBe('failed')
    expect(callsOf(second)).toEqual([])
    second.say({ type: 'tool_error', callId: callsOf(first)[0] ?? '', code: 'CANCELLED', message: 'stopped' })
    await settle()
    expect(callsOf(second)).toHaveLength(1)
  })

  it('a task that waits for them can be cancelled, and is lost with its worker', async () => {
    const { first, restart, ids } = busyServer()
    await settle()
    const { worker, tasks } = restart()
    worker.hello(callsOf(first))
    await settle()
    expect(tasks.cancelTask(ids[1] ?? '')).toBe(true)
    const last = tasks.submitTask({ ...task, instanceId: 'w' })
    await settle()
    expect(callsOf(worker)).toEqual([])
    worker.drop()
    await settle()
    expect(tasks.getTask('taskId' in last ? last.taskId : '')?.status).toBe('failed')
    expect(callsOf(worker)).toEqual([])
  })

  it('names a bounded number of them', async () => {
    const { restart } = busyServer()
    const { worker, instances } = restart()
    worker.hello(Array.from({ length: 101 }, (_, at) => `c${at}`))
    await settle()
    expect(worker.heard).toMatchObject([{ type: 'error', code: 'INVALID_MESSAGE' }])
    expect(instances.get('w')?.isConnected).toBe(false)
    worker.drop()
  })
})

it.each([
  [
    'throws',
    () => {
      throw new Error('it cannot say')
    },
  ],
  ['rejects', () => Promise.reject(new Error('it cannot say'))],
])('an instance whose `freed` %s gets its commands', async (_how, freed) => {
  const clock = createManualClock()
  const instances = new InstanceManager({ clock })
  const tasks = new TaskManager({ clock, instances })
  onTestFinished(() => tasks.dispose())
  const callTool = vi.fn(() => Promise.resolve({ content: [] }))
  instances.connect({
    id: 'mine',
    kind: 'websocket',
    callTool,
    listTools: () => Promise.resolve([]),
    onLost: () => undefined,
    close: () => Promise.resolve(),
    connection: {
      timing: {},
      onEvent: (listener) => listener('connection.opened'),
      failCalls: () => undefined,
      freed,
    },
  })
  tasks.submitTask(task)
  await settle()
  expect(callTool).toHaveBeenCalledTimes(1)
})

it('S3: an instance that is busy again when it was freed is waited for once more', async () => {
  const clock = createManualClock()
  const instances = new InstanceManager({ clock })
  const tasks = new TaskManager({ clock, instances })
  onTestFinished(() => tasks.dispose())
  const callTool = vi.fn(() => Promise.resolve({ content: [] }))
  const free: (() => void)[] = []
  let asked = 0
  instances.connect({
    id: 'mine',
    kind: 'websocket',
    callTool,
    listTools: () => Promise.resolve([]),
    onLost: () => undefined,
    close: () => Promise.resolve(),
    connection: {
      timing: {},
      onEvent: (listener) => listener('connection.opened'),
      failCalls: () => undefined,
      freed: () => {
        asked += 1
        return asked > 2 ? undefined : new Promise<void>((resolve) => free.push(resolve))
      },
    },
  })
  tasks.submitTask(task)
  await settle()
  free[0]?.()
  await settle()
  expect({ asked, calls: callTool.mock.calls.length }).toEqual({ asked: 2, calls: 0 })
  free[1]?.()
  await settle()
  expect({ asked, calls: callTool.mock.calls.length }).toEqual({ asked: 3, calls: 1 })
})

it('K12: a worker of an earlier process needs its secret', async () => {
  const { clock, restart } = busyServer()
  const { instances, worker } = restart()
  const stranger = connectFakeWorker(instances, { instanceId: 'w', secret: 'guessed' }, { clock })
  stranger.hello()
  await settle()
  expect(stranger.closedBy?.code).toBe(4401)
  expect(() => registerWorker(instances, { instanceId: 'w' }, { clock, websocketUrl: 'ws://x' })).toThrow('is reserved')
  worker.hello()
  expect(instances.get('w')?.isConnected).toBe(true)
})
