/** The sockets of workers: how long they may be silent, what is heard after their end, and workers that other servers know as well. */
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import {
  acceptWorker,
  registerWorker,
  restoreWorker,
  type SharedWorkers,
} from '../../../../src/command-tasks/instances/worker-socket.js'
import { digestOf } from '../../../../src/command-tasks/instances/websocket-instance.js'
import { TaskManager } from '../../../../src/command-tasks/task-manager.js'
import { memoryStore } from '../../../../src/store/index.js'
import { createWorkerStore } from '../../../../src/server/backend/worker-store.js'
import { breakableStore } from '../../../support/breakable-store.js'
import { WORKER_CLOSE, type RegisterResponse } from '../../../../src/protocol/instance-messages.js'
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js'

let clock: ManualClock
let instances: InstanceManager
let registration: RegisterResponse

beforeEach(() => {
  clock = createManualClock()
  instances = new InstanceManager({ clock })
  registration = registerWorker(instances, { instanceId: 'w' }, { websocketUrl: 'ws://x', clock })
})
afterEach(async () => {
  await instances.dispose()
  expect(clock.pending).toBe(0)
})

/** A socket that does nothing by itself: not even `close` is followed by an end. */
function open(shared?: SharedWorkers) {
  const types: string[] = []
  const close = vi.fn<(code: number, reason: string) => void>()
  const socket = { send: (text: string) => void types.push((JSON.parse(text) as { type: string }).type), close }
  const connection = acceptWorker(instances, socket, { clock, shared })
  const say = (message: object): Promise<void> | void => connection.receive(JSON.stringify(message))
  return {
    /** The types of all frames that were sent. */
    types,
    close,
    say,
    hello: () => say({ type: 'hello', instanceId: 'w', secret: registration.secret }),
    drop: () => connection.closed(),
  }
}

describe('a socket', () => {
  it('may take 10 s to say hello', async () => {
    const worker = open()
    clock.advance(9999)
    await setImmediate()
    expect(worker.close).not.toHaveBeenCalled()
    clock.advance(1)
    await setImmediate()
    expect([worker.types, worker.close.mock.calls]).toEqual([
      ['error'],
      [[WORKER_CLOSE.refused, 'No hello arrived within 10000 ms.']],
    ])
    worker.drop()
  })

  it('that was refused is not heard any more', () => {
    const worker = open()
    void worker.say({ type: 'hello', instanceId: 'w', secret: 'guessed' })
    void worker.hello()
    void worker.say({ type: 'ping' })
    expect(worker.types).toEqual(['error'])
    expect(worker.close).toHaveBeenCalledOnce()
    expect(instances.get('w')?.isConnected).toBe(false)
    worker.drop()
  })

  it('that has closed is not heard any more', () => {
    const worker = open()
    worker.drop()
    void worker.hello()
    expect(worker.types).toEqual([])
    expect(instances.get('w')?.isConnected).toBe(false)
    expect(clock.pending).toBe(1)
  })

  it('that has said hello has no time limit for that', async () => {
    const worker = open()
    void worker.hello()
    clock.advance(10_000)
    await setImmediate()
    expect(worker.close).not.toHaveBeenCalled()
  })
})

describe('a worker that is stored', () => {
  it.each([[true], [false], [undefined]])('is the same when it is restored: isBrowser %s', async (isBrowser) => {
    const tools = [{ name: 'click' }]
    const store = memoryStore()
    const host = new TaskManager({ instances: new InstanceManager({ clock }), clock, store })
    const request = { instanceId: 'first', tools }
    const options = { websocketUrl: 'ws://x', clock, ...(isBrowser !== undefined && { isBrowser }) }
    await createWorkerStore(host, host.instances).register(request, options)
    const [row] = store.contents().instances
    restoreWorker(instances, { ...row!, id: 'second' }, { clock })
    const { instance } = instances.get('second')!
    expect([instance.isBrowser, await instance.listTools()]).toEqual([isBrowser, tools])
    await Promise.all([host.dispose(), host.instances.dispose()])
  })

  it('is registered once under an id, and stored with the secret of that one', async () => {
    const store = memoryStore()
    const host = new TaskManager({ instances, clock, store })
    const workers = createWorkerStore(host, instances)
    const register = (instanceId: string) => workers.register({ instanceId }, { websocketUrl: 'ws://x', clock })
    const [first, second] = await Promise.allSettled([register('same'), register('same')])
    expect([first.status, second.status]).toEqual(['fulfilled', 'rejected'])
    const { secret } = (first as PromiseFulfilledResult<{ secret: string }>).value
    const secretSha256 = digestOf(secret).toString('hex')
    expect(store.contents().instances).toMatchObject([{ id: 'same', secretSha256 }])
    await host.dispose()
  })

  it('is not registered when it cannot be stored, and can be later', async () => {
    const { store, state, memory } = breakableStore()
    const host = new TaskManager({ instances, clock, store, onError: () => undefined })
    const workers = createWorkerStore(host, instances)
    const register = () => workers.register({ instanceId: 'new' }, { websocketUrl: 'ws://x', clock })
    state.isBroken = true
    await expect(register()).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect([instances.get('new'), memory.contents().instances]).toEqual([undefined, []])
    state.isBroken = false
    await register()
    expect(memory.contents().instances.map(({ id }) => id)).toEqual(['new'])
    expect(instances.get('new')).toBeDefined()
    await host.dispose()
  })
})

describe('a worker that other servers know', () => {
  /** A promise that the test settles. */
  function settleable() {
    let [resolve, reject]: [() => void, (reason: Error) => void] = [() => undefined, () => undefined]
    const promise = new Promise<void>((done, fail) => ([resolve, reject] = [done, fail]))
    return { promise, resolve: () => resolve(), reject: (reason: Error) => reject(reason) }
  }

  function shared() {
    const [found, announced] = [settleable(), settleable()]
    const find = vi.fn<SharedWorkers['find']>(() => found.promise)
    const announce = vi.fn<SharedWorkers['announced']>(() => announced.promise)
    const workers: SharedWorkers = { find, announced: announce }
    return { found, announced, workers, find, announce }
  }

  it('is welcomed, and gets its calls, when it was found and the others know it', async () => {
    const { found, announced, workers, find } = shared()
    const worker = open(workers)
    const greeted = worker.hello()
    expect(find).toHaveBeenCalledExactlyOnceWith('w', registration.secret)
    await setImmediate()
    expect([worker.types, instances.get('w')?.isConnected]).toEqual([[], false])
    found.resolve()
    await setImmediate()
    expect([worker.types, instances.get('w')?.isConnected]).toEqual([[], true])
    void instances
      .get('w')!
      .instance.callTool({
        name: 'click',
        arguments: {},
        signal: new AbortController().signal,
        onProgress: () => undefined,
      })
      .catch(() => undefined)
    announced.resolve()
    await greeted
    expect(worker.types).toEqual(['welcome', 'tool_call'])
    clock.advance(15_000)
    expect(worker.types).toEqual(['welcome', 'tool_call', 'ping'])
  })

  it('that closes while it is looked up is not attached', async () => {
    const { found, workers, announce } = shared()
    const worker = open(workers)
    const greeted = worker.hello()
    worker.drop()
    found.resolve()
    await greeted
    expect(instances.get('w')?.isConnected).toBe(false)
    expect([worker.types, announce.mock.calls]).toEqual([[], []])
  })

  it('that closes while it is announced is sent nothing', async () => {
    const { found, announced, workers } = shared()
    const worker = open(workers)
    const greeted = worker.hello()
    found.resolve()
    await setImmediate()
    worker.drop()
    announced.resolve()
    await greeted
    expect(worker.types).toEqual([])
  })

  it('that is taken over while it is announced is sent nothing', async () => {
    const { found, announced, workers } = shared()
    const worker = open(workers)
    const greeted = worker.hello()
    found.resolve()
    await setImmediate()
    void open().hello()
    expect(worker.close).toHaveBeenCalledExactlyOnceWith(WORKER_CLOSE.takenOver, 'Another connection took over.')
    announced.resolve()
    await greeted
    expect(worker.types).toEqual([])
    worker.drop()
    expect(instances.get('w')?.isConnected).toBe(true)
  })

  it('that cannot be looked up now is told to come again, and is not heard any more', async () => {
    const { found, workers } = shared()
    const worker = open(workers)
    const greeted = worker.hello()
    found.reject(new Error('Redis is away'))
    await greeted
    expect(worker.close.mock.calls).toEqual([
      [WORKER_CLOSE.goingAway, 'The server cannot look up this instance now. Connect again later.'],
    ])
    void worker.say({ type: 'ping' })
    expect(worker.types).toEqual([])
    expect(clock.pending).toBe(1)
  })

  it('with a wrong secret is refused, and not announced', async () => {
    const { found, workers, announce } = shared()
    const worker = open(workers)
    found.resolve()
    await worker.say({ type: 'hello', instanceId: 'w', secret: 'guessed' })
    expect([worker.types, announce.mock.calls]).toEqual([['error'], []])
    worker.drop()
  })
})
