/** Instances that are paused over HTTP, and what clients are told: S11. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTaskClient } from '../../../src/client/index.js'
import { InstanceManager, localInstance, TaskManager } from '../../../src/server/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { createEventLog } from '../../../src/server/backend/event-log.js'
import { createHub, eventsOf } from '../../../src/server/backend/hub.js'
import { createInstanceList } from '../../../src/server/backend/instance-list.js'
import { breakableStore } from '../../support/breakable-store.js'
import { startPage } from '../page/test-page.js'
import { startTestServer, taskOf } from './test-server.js'

describe('POST /instances/:id/pause and /resume', () => {
  it('S11: pause and resume an instance, again with the same answer, and lists show it', async () => {
    const server = await startTestServer()
    for (const _ of [1, 2]) {
      const { status, body } = await server.post('/instances/calc/pause')
      expect({ status, body }).toEqual({ status: 200, body: { instanceId: 'calc', isPaused: true } })
    }
    const listed = async () => (await server.call('/instances')).body['instances']
    expect(await listed()).toMatchObject([{ id: 'calc', pausedSince: expect.any(Number) as number }])
    const { body: submitted } = await server.post('/tasks', taskOf('add'))
    expect(submitted).toMatchObject({ queuePosition: 1 })
    const path = `/tasks/${String(submitted['taskId'])}`
    expect((await server.call(path)).body['task']).toMatchObject({ status: 'queued' })
    for (const _ of [1, 2]) {
      const { status, body } = await server.post('/instances/calc/resume', {})
      expect({ status, body }).toEqual({ status: 200, body: { instanceId: 'calc', isPaused: false } })
    }
    await expect.poll(async () => (await server.call(path)).body['task']).toMatchObject({ status: 'completed' })
    expect(((await listed()) as object[])[0]).not.toHaveProperty('pausedSince')
  })

  it('S11: refuse an unknown instance, and what has no token', async () => {
    const server = await startTestServer({ auth: { tokens: ['a-secret-token-of-32-characters-'] } })
    expect((await server.post('/instances/calc/pause')).status).toBe(401)
    const headers = { authorization: 'Bearer a-secret-token-of-32-characters-' }
    for (const action of ['pause', 'resume']) {
      const { status, body } = await server.post(`/instances/nobody/${action}`, undefined, headers)
      expect([status, body['code']]).toEqual([404, 'INVALID_INSTANCE'])
    }
    expect((await server.call('/instances/calc/pause', { headers })).status).toBe(405)
    expect(server.taskManager.pausedInstances.size).toBe(0)
  })

  it('S11: say when the change could not be stored yet', async () => {
    const { store, state } = breakableStore()
    const server = await startTestServer({ store })
    state.isBroken = true
    expect(await server.post('/instances/calc/pause')).toMatchObject({ status: 503, body: { code: 'NOT_STORED' } })
    state.isBroken = false
  })

  it('S11: are there after a restart', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store })
    await first.post('/instances/calc/pause')
    await first.post('/tasks', taskOf('hold'))
    const next = await startTestServer({ store: store.copy() })
    expect((await next.call('/instances')).body['instances']).toMatchObject([
      { pausedSince: expect.any(Number) as number },
    ])
    expect(next.taskManager.lanes).toMatchObject([{ instanceId: 'calc', runningId: undefined }])
    await next.post('/instances/calc/resume')
    const held = await next.held()
    held.finish()
  })

  it('S11: resume an instance that is not connected', async () => {
    const instances = new InstanceManager()
    const taskManager = new TaskManager({ instances })
    onTestFinished(() => taskManager.dispose())
    instances.connect(localInstance({ id: 'calc', tools: [] }))
    const list = createInstanceList({ clock: { now: Date.now } as never, instances, tasks: taskManager })
    await list.setPaused?.('calc', true)
    await instances.disconnect('calc')
    await list.setPaused?.('calc', false)
    expect(taskManager.pausedInstances.size).toBe(0)
    await expect(list.setPaused?.('calc', false)).rejects.toMatchObject({ code: 'INSTANCE_UNKNOWN' })
  })
})

describe('clients', () => {
  it('S11: that are subscribed to an instance are notified, and no others', async () => {
    const server = await startTestServer()
    const [told, other] = [await server.client(), await server.client()]
    await told.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    await other.ask({ type: 'subscribe_instance', instanceId: 'another' })
    await server.post('/instances/calc/pause')
    const paused = await told.skipTo('instance_pause')
    expect(paused).toMatchObject({ instanceId: 'calc', pausedSince: paused['timestamp'] })
    await server.post('/instances/calc/resume')
    expect(await told.skipTo('instance_pause')).not.toHaveProperty('pausedSince')
    await told.ask({ type: 'unsubscribe_instance', instanceId: 'calc' })
    await server.post('/instances/calc/pause')
    await told.ask({ type: 'task_list' })
    await other.ask({ type: 'task_list' })
    expect([told.takeAll(), other.takeAll()]).toEqual([[], []])
  })

  it('S11: are not notified any longer when their hub is disposed, which listens no more', () => {
    const tasks = new TaskManager({ instances: new InstanceManager() })
    onTestFinished(() => tasks.dispose())
    const off = vi.spyOn(tasks, 'off')
    createHub(eventsOf(tasks, createEventLog({ clock: createManualClock(), isKnown: () => true }))).dispose()
    expect(off.mock.calls.map(([event]) => event)).toEqual(['progress', 'complete', 'pause'])
  })

  it('S11: pause and resume with the client library', async () => {
    const server = await startTestServer()
    const client = createTaskClient({ url: server.httpUrl })
    onTestFinished(() => client.close())
    await client.pauseInstance('calc')
    expect((await client.instances())[0]?.pausedSince).toBeTypeOf('number')
    await client.resumeInstance('calc')
    expect((await client.instances())[0]?.pausedSince).toBeUndefined()
    await expect(client.pauseInstance('no/body')).rejects.toMatchObject({ code: 'INVALID_INSTANCE' })
    await expect(client.resumeInstance('nobody')).rejects.toMatchObject({ code: 'INVALID_INSTANCE', status: 404 })
  })
})

describe('the page', () => {
  it('S11: pauses and resumes an instance, and shows it', async () => {
    const instances = new InstanceManager()
    instances.connect(localInstance({ id: 'calc', tools: [] }))
    const taskManager = new TaskManager({ instances })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { post, read } = await startPage({ taskManager })
    const reader = await read()
    await reader.until(({ ready }) => ready !== undefined)
    expect(await post('instances/calc/pause')).toMatchObject({ status: 200 })
    expect(taskManager.pausedInstances.has('calc')).toBe(true)
    const shows = (isPaused: boolean) => () =>
      reader.events.some(
        ({ type, data }) =>
          type === 'changes' &&
          data.instances?.some(({ pausedSince }) => (pausedSince !== undefined) === isPaused) === true,
      )
    await reader.until(shows(true))
    reader.events.length = 0
    expect(await post('instances/calc/resume')).toMatchObject({ status: 200 })
    await reader.until(shows(false))
    expect(await post('instances/nobody/pause')).toMatchObject({ status: 404, body: { code: 'INVALID_INSTANCE' } })
    expect(await post('instances/calc/pause', { for: 1 })).toMatchObject({ status: 400 })
    expect(await post('instances/calc/stop')).toMatchObject({ status: 404 })
    expect(taskManager.pausedInstances.size).toBe(0)
  })
})
