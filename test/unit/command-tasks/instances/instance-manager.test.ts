/** Which instances are connected, and the handlers that are called about it. */
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { InstanceError } from '../../../../src/errors.js'
import { callTool } from '../../../../src/command-tasks/instances/command-call.js'
import type { Instance, InstanceConnection, InstanceEnd } from '../../../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../../src/command-tasks/instances/local-instance.js'
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js'
import { callOf } from '../../../support/instance-suite.js'

let clock: ManualClock
let instances: InstanceManager
let told: string[]
const onError = vi.fn()

beforeEach(() => {
  clock = createManualClock(500)
  onError.mockReset()
  instances = new InstanceManager({ clock, onError })
  told = []
  instances.onConnect((id) => told.push(`+${id}`))
  instances.onDisconnect((id) => told.push(`-${id}`))
})

const local = (id: string) => localInstance({ id, tools: [] })

/** An instance whose connection is controlled by the test. */
function remote(id: string, timing: InstanceConnection['timing'] = {}) {
  let emit: Parameters<InstanceConnection['onEvent']>[0] = () => undefined
  let lose: (reason: string) => void = () => undefined
  const failCalls = vi.fn()
  const close = vi.fn((_why?: InstanceEnd) => Promise.resolve())
  const instance: Instance = {
    ...local(id),
    kind: 'websocket',
    connection: { timing, onEvent: (listener) => (emit = listener), failCalls },
    onLost: (listener) => (lose = listener),
    close,
  }
  return {
    instance,
    failCalls,
    close,
    emit: (event: Parameters<typeof emit>[0]) => emit(event),
    lose: () => lose('it broke.'),
  }
}

describe('an instance that is registered', () => {
  it('is connected at once when it has no connection to open', () => {
    const entry = instances.connect(local('a'))
    expect(entry).toMatchObject({ id: 'a', kind: 'local', state: 'connected', isConnected: true, connectedAt: 500 })
    expect(instances.get('a')).toBe(entry)
    expect(told).toEqual(['+a'])
  })

  it('is connecting until its connection opens', () => {
    const { instance, emit } = remote('a')
    const entry = instances.connect(instance)
    expect([entry.state, entry.isConnected, told]).toEqual(['connecting', false, []])
    emit('connection.opened')
    expect([entry.state, entry.isConnected, told]).toEqual(['connected', true, ['+a']])
  })

  it('is rejected when its id is in use, and the other one stays', () => {
    const first = instances.connect(local('a'))
    expect(() => instances.connect(local('a'))).toThrow(InstanceError)
    expect(instances.get('a')).toBe(first)
    expect(told).toEqual(['+a'])
  })

  it('is disconnected when it reports its loss at once', () => {
    const { instance } = remote('a')
    const entry = instances.connect({ ...instance, onLost: (listener) => listener('too late.') })
    expect(entry.state).toBe('disconnected')
    expect(instances.get('a')).toBeUndefined()
    expect(told).toEqual(['-a'])
  })
})

describe('the first instance', () => {
  it('is the first connected one, in the order of registration', () => {
    expect(instances.first()).toBeUndefined()
    const late = remote('late')
    instances.connect(late.instance)
    instances.connect(local('b'))
    instances.connect(local('c'))
    expect(instances.first()?.id).toBe('b')
    late.emit('connection.opened')
    expect(instances.first()?.id).toBe('late')
    expect(instances.list().map(({ id }) => id)).toEqual(['late', 'b', 'c'])
  })
})

describe('an instance that disconnects', () => {
  it('I1: disconnects once, whatever the cause', async () => {
    const { instance, emit, lose, close } = remote('a')
    const entry = instances.connect(instance)
    emit('connection.opened')
    lose()
    lose()
    emit('connection.opened')
    expect(await instances.disconnect('a')).toBe(false)
    expect(entry.state).toBe('disconnected')
    expect(told).toEqual(['+a', '-a'])
    expect(close).toHaveBeenCalledTimes(1)
  })

  it('is closed after its handlers were called, and disconnect waits for that', async () => {
    const { instance, close } = remote('a')
    instances.connect(instance)
    let finish: () => void = () => undefined
    close.mockReturnValue(new Promise<void>((resolve) => (finish = resolve)))
    const done = vi.fn()
    const disconnected = instances.disconnect('a').then(done)
    expect(told).toEqual(['-a'])
    await Promise.resolve()
    expect(done).not.toHaveBeenCalled()
    finish()
    await disconnected
    expect(done).toHaveBeenCalledWith(true)
  })

  it('reports the reason', () => {
    const reasons: string[] = []
    instances.onDisconnect((_id, reason) => reasons.push(reason))
    const broken = remote('broken')
    instances.connect(broken.instance)
    broken.lose()
    instances.connect(remote('slow', { connectTimeoutMs: 10 }).instance)
    clock.advance(10)
    const silent = remote('silent', { livenessMs: 45_000 })
    instances.connect(silent.instance)
    silent.emit('connection.opened')
    clock.advance(45_000)
    void instances.connect(local('mine'))
    void instances.disconnect('mine', 'Enough.')
    expect(reasons).toEqual([
      'it broke.',
      'It did not connect within 10 ms.',
      'It showed no sign of life for 45000 ms.',
      'Enough.',
    ])
  })

  it('I3: stays connected while it is alive', () => {
    const { instance, emit } = remote('a', { livenessMs: 45_000 })
    const entry = instances.connect(instance)
    emit('connection.opened')
    for (let n = 0; n < 5; n += 1) {
      clock.advance(44_999)
      emit('connection.alive')
    }
    expect(entry.isConnected).toBe(true)
    clock.advance(45_000)
    expect(entry.isConnected).toBe(false)
  })

  it('I4: a take-over fails the calls and calls no handler', () => {
    const { instance, emit, failCalls } = remote('a')
    const entry = instances.connect(instance)
    emit('connection.opened')
    emit('connection.takenOver')
    expect(failCalls).toHaveBeenCalledExactlyOnceWith('Its connection was taken over.')
    expect(entry.isConnected).toBe(true)
    expect(told).toEqual(['+a'])
  })

  it('I4: a take-over, and nothing else, is told to who asked for it', () => {
    const { instance, emit } = remote('a')
    const taken: string[] = []
    const off = instances.onTakenOver((id) => taken.push(id))
    instances.connect(instance)
    emit('connection.opened')
    emit('connection.alive')
    expect(taken).toEqual([])
    emit('connection.takenOver')
    expect(taken).toEqual(['a'])
    off()
    emit('connection.takenOver')
    expect(taken).toEqual(['a'])
  })

  it('is heard of with each event of its connection, and is connected since it was opened', () => {
    const { instance, emit } = remote('a')
    const entry = instances.connect(instance)
    expect([entry.connectedAt, entry.lastActivity]).toEqual([undefined, undefined])
    const times: unknown[] = []
    for (const event of ['connection.opened', 'connection.alive', 'connection.takenOver'] as const) {
      clock.advance(100)
      emit(event)
      times.push([entry.connectedAt, entry.lastActivity])
    }
    expect(times).toEqual([
      [600, 600],
      [600, 700],
      [600, 800],
    ])
  })

  it.each([
    ['returns', () => Promise.resolve({ content: [] })],
    ['fails', () => Promise.reject(new Error('no'))],
  ])('is heard of when a call %s', async (_how, answer) => {
    const entry = instances.connect({ ...local('a'), callTool: answer })
    clock.advance(100)
    await callTool(entry, callOf('it')).catch(() => undefined)
    expect([entry.connectedAt, entry.lastActivity]).toEqual([500, 600])
  })

  it('has a number of its own, also when its id comes again', async () => {
    const first = instances.connect(local('a'))
    await instances.disconnect('a')
    expect([first.serial, instances.connect(local('b')).serial, instances.connect(local('a')).serial]).toEqual([
      1, 2, 3,
    ])
  })

  it.each([
    [
      'was disconnected',
      (subject: ReturnType<typeof remote>) => void instances.disconnect(subject.instance.id),
      'disconnected',
    ],
    ['broke', (subject: ReturnType<typeof remote>) => subject.lose(), 'disconnected'],
    ['was silent', () => clock.advance(100), 'silent'],
    ['ends with its manager', () => void instances.dispose(), 'goingAway'],
  ])('that %s is closed for that reason', async (_what, end, why) => {
    const subject = remote('a', { connectTimeoutMs: 100 })
    instances.connect(subject.instance)
    end(subject)
    await Promise.resolve()
    expect(subject.close.mock.calls).toEqual([[why]])
    expect(clock.pending).toBe(0)
  })

  it('may be replaced by another one with its id inside a handler', () => {
    instances.connect(local('a'))
    const off = instances.onDisconnect((id) => {
      off()
      instances.connect(local(id))
    })
    void instances.disconnect('a')
    expect(instances.get('a')?.isConnected).toBe(true)
    expect(told).toEqual(['+a', '-a', '+a'])
  })
})

describe('handlers', () => {
  it('S6: one that throws or rejects is reported and stops no other', async () => {
    const boom = new Error('boom')
    instances = new InstanceManager({ onError })
    instances.onDisconnect(() => {
      throw boom
    })
    const rejecting: () => unknown = () => Promise.reject(boom)
    instances.onDisconnect(rejecting)
    instances.onDisconnect((id) => told.push(id))
    instances.connect(local('a'))
    await instances.disconnect('a')
    expect(told).toEqual(['a'])
    expect(onError.mock.calls).toEqual(Array(2).fill([boom, { source: 'handler', instanceId: 'a' }]))
  })

  it('S6: one that another handler removes is not called', () => {
    const late = vi.fn()
    instances.onDisconnect(() => takeBack())
    const takeBack = instances.onDisconnect(late)
    instances.connect(local('a'))
    void instances.disconnect('a')
    expect(late).not.toHaveBeenCalled()
  })

  it('S6: those of connections and take-overs, too', () => {
    const boom = new Error('boom')
    const throws = (): never => {
      throw boom
    }
    instances.onConnect(throws)
    instances.onTakenOver(throws)
    const heard = vi.fn()
    instances.onTakenOver(heard)
    const { instance, emit } = remote('a')
    instances.connect(instance)
    emit('connection.opened')
    emit('connection.takenOver')
    expect(onError.mock.calls).toEqual(Array(2).fill([boom, { source: 'handler', instanceId: 'a' }]))
    expect(heard).toHaveBeenCalledExactlyOnceWith('a')
  })

  it('S6: one that throws is reported to the console without onError, and an onError that throws is ignored', () => {
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const boom = new Error('boom')
    const throws = (): never => {
      throw boom
    }
    const plain = new InstanceManager({ clock })
    plain.onConnect(throws)
    expect(plain.connect(local('a')).isConnected).toBe(true)
    expect(said.mock.calls).toEqual([['[agent-tasks] handler of instance a:', boom]])
    const strict = new InstanceManager({ clock, onError: throws })
    strict.onConnect(throws)
    expect(strict.connect(local('b')).isConnected).toBe(true)
    expect(said).toHaveBeenCalledOnce()
  })

  it('are not called after they were removed', () => {
    const handler = vi.fn()
    instances.onDisconnect(handler)()
    instances.connect(local('a'))
    void instances.disconnect('a')
    expect(handler).not.toHaveBeenCalled()
  })
})

describe('dispose', () => {
  it('disconnects all instances, takes no others, and leaves no timer', async () => {
    const { instance, close } = remote('a', { connectTimeoutMs: 1000 })
    instances.connect(instance)
    instances.connect(local('b'))
    await instances.dispose()
    expect(told).toEqual(['+b', '-a', '-b'])
    expect(close).toHaveBeenCalledTimes(1)
    expect(instances.list()).toEqual([])
    expect(clock.pending).toBe(0)
    expect(() => instances.connect(local('c'))).toThrow(/disposed/)
  })

  it('reports an instance that fails to close', async () => {
    const { instance, close } = remote('a')
    close.mockRejectedValue(new Error('stuck'))
    instances.connect(instance)
    await instances.dispose()
    expect(onError).toHaveBeenCalledWith(new Error('stuck'), { source: 'close', instanceId: 'a' })
  })
})
