/** Remote workers: registration, hello, take-over, liveness, and which answers count. */
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { InstanceManager } from '../../../../src/command-tasks/instances/instance-manager.js'
import {
  websocketInstance,
  type WebSocketInstance,
} from '../../../../src/command-tasks/instances/websocket-instance.js'
import { registerWorker } from '../../../../src/command-tasks/instances/worker-socket.js'
import { WORKER_CLOSE, type RegisterResponse } from '../../../../src/protocol/instance-messages.js'
import { connectFakeWorker } from '../../../support/fake-worker.js'
import { callOf, instanceSuite } from '../../../support/instance-suite.js'
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js'
import { createSuiteTools } from '../../../support/suite-tools.js'

const websocketUrl = 'ws://127.0.0.1:3300/worker'

instanceSuite('websocket', async () => {
  const tools = createSuiteTools()
  const clock = createManualClock()
  // Registered with a manager of its own, so that the suite receives its loss itself.
  const instances = new InstanceManager({ clock })
  const registration = registerWorker(instances, {}, { websocketUrl, clock })
  const worker = connectFakeWorker(instances, registration, { tools, clock })
  worker.hello()
  const { instance } = instances.get(registration.instanceId)!
  return { instance, tools, clock, lose: () => worker.drop(), reportsLoss: true, dispose: () => instances.dispose() }
})

let clock: ManualClock
let instances: InstanceManager
let lost: string[]

beforeEach(() => {
  clock = createManualClock(1000)
  instances = new InstanceManager({ clock })
  lost = []
  instances.onDisconnect((id, reason) => lost.push(`${id}: ${reason}`))
})
afterEach(async () => {
  await instances.dispose()
  expect(clock.pending).toBe(0)
})

const register = (body: object = { instanceId: 'browser' }): RegisterResponse =>
  registerWorker(instances, body, { websocketUrl, clock })
const connect = (registration: Pick<RegisterResponse, 'instanceId' | 'secret'>, answersPings = true) =>
  connectFakeWorker(instances, registration, { clock, answersPings })
const entry = () => instances.get('browser')
const instance = () => entry()!.instance as WebSocketInstance
const callsHeardBy = (worker: ReturnType<typeof connect>) =>
  worker.heard.flatMap((message) => (message.type === 'tool_call' ? [message] : []))
const callIdHeardBy = (worker: ReturnType<typeof connect>) => callsHeardBy(worker)[0]!.callId

describe('a registration', () => {
  it('is registered and not connected until its worker says hello', () => {
    const registration = register()
    expect(registration).toEqual({ instanceId: 'browser', secret: expect.any(String) as string, websocketUrl })
    expect(entry()).toMatchObject({ state: 'connecting', isConnected: false })
    connect(registration).hello()
    expect(entry()).toMatchObject({ state: 'connected', isConnected: true, connectedAt: 1000 })
  })

  it('gets an id when it asks for none, and a secret of its own', () => {
    const [a, b] = [register({}), register({})]
    expect(a.instanceId).toMatch(/^worker_[0-9a-f-]{36}$/)
    expect(a.instanceId).not.toBe(b.instanceId)
    expect(a.secret).not.toBe(b.secret)
    expect(a.secret).toMatch(/^[\w-]{43}$/)
  })

  it('is rejected for an id that is in use, and changes nothing', () => {
    const registration = register()
    clock.advance(1500)
    expect(() => register()).toThrow(
      /^Instance id "browser" is reserved for the worker that registered it, for another 59 s\. .* `secretFile` keeps its id/,
    )
    connect(registration).hello()
    expect(() => register()).toThrow(
      /^Instance id "browser" is in use\. End that instance first, or choose another id\.$/,
    )
    expect(entry()?.isConnected).toBe(true)
  })

  it('is rejected for an invalid id, with the name of the field', () => {
    expect(() => register({ instanceId: 'a b' })).toThrow(/^body\.instanceId: got "a b", expected/)
  })

  it('I2: expires when its worker never connects', () => {
    const registration = register()
    clock.advance(59_999)
    expect(entry()).toBeDefined()
    clock.advance(1)
    expect(entry()).toBeUndefined()
    expect(lost).toEqual(['browser: It did not connect within 60000 ms.'])
    const late = connect(registration)
    late.hello()
    expect(late.closedBy?.code).toBe(WORKER_CLOSE.refused)
  })
})

describe('hello', () => {
  it('is refused with the same error for a wrong secret and an unknown id', () => {
    const { secret } = register()
    const refused = [
      { instanceId: 'browser', secret: 'x' },
      { instanceId: 'nobody', secret },
    ].map((registration) => {
      const worker = connect(registration)
      worker.hello()
      return { closedBy: worker.closedBy, heard: worker.heard }
    })
    expect(refused[0]).toEqual(refused[1])
    expect(refused[0]).toMatchObject({ closedBy: { code: 4401 }, heard: [{ type: 'error', code: 'UNAUTHORIZED' }] })
    expect(entry()?.isConnected).toBe(false)
  })

  it('must arrive in time', async () => {
    const worker = connect(register())
    clock.advance(10_000)
    await Promise.resolve()
    expect(worker.closedBy).toEqual({ code: 4401, reason: 'No hello arrived within 10000 ms.' })
  })

  it('is answered with welcome, before any call', async () => {
    const worker = connect(register())
    instances.onConnect(
      () =>
        void instance()
          .callTool(callOf('echo'))
          .catch(() => undefined),
    )
    worker.hello()
    expect(worker.heard.map(({ type }) => type)).toEqual(['welcome', 'tool_call'])
  })

  it('is accepted once on a connection', () => {
    const worker = connect(register())
    worker.hello()
    worker.hello()
    expect(worker.heard.at(-1)).toMatchObject({ type: 'error', code: 'PROTOCOL_ERROR' })
    expect(entry()?.isConnected).toBe(true)
  })

  it.each([
    ['not JSON', '{', { code: 'INVALID_JSON' }],
    ['an unknown type', '{"type":"dance"}', { code: 'INVALID_MESSAGE' }],
    [
      'a missing field',
      '{"type":"hello","instanceId":"browser"}',
      { code: 'INVALID_MESSAGE', error: expect.stringContaining('message.secret') as string },
    ],
    ['a call before hello', '{"type":"pong"}', { code: 'PROTOCOL_ERROR' }],
    ['null', 'null', { code: 'INVALID_MESSAGE' }],
  ])('after %s, the connection says what is wrong and stays open', (_what, text, expected) => {
    const worker = connect(register())
    worker.say(text)
    expect(worker.heard).toMatchObject([{ type: 'error', ...expected }])
    worker.hello()
    expect(worker.closedBy).toBeUndefined()
    expect(entry()?.isConnected).toBe(true)
  })
})

describe('before hello', () => {
  it('a worker may ping the server', () => {
    const worker = connect(register())
    worker.say({ type: 'ping' })
    expect(worker.heard).toEqual([{ type: 'pong' }])
    expect(entry()?.isConnected).toBe(false)
    worker.drop()
  })
})

const alone = () => {
  const heard: string[] = []
  const socket = { send: (text: string) => void heard.push(text), close: vi.fn() }
  return { heard, socket, instance: websocketInstance({ id: 'alone', secret: 's', clock }) }
}

describe('an instance that is not registered', () => {
  it('reports to a later listener that it is connected, and then that it is lost, and why', async () => {
    const { instance, socket } = alone()
    instance.attach(socket)
    const told: string[] = []
    instance.connection!.onEvent((event) => void told.push(event))
    await instance.close()
    instance.onLost((reason) => void told.push(reason))
    expect(told).toEqual(['connection.opened', 'it was disconnected.'])
    expect(socket.close).toHaveBeenCalledExactlyOnceWith(WORKER_CLOSE.disconnected, 'The instance was disconnected.')
  })

  it('takes no socket after its end, and sends nothing to it', async () => {
    const { instance, socket, heard } = alone()
    await instance.close()
    expect(instance.attach(socket)).toBeUndefined()
    expect(heard).toEqual([])
    await expect(instance.callTool(callOf('echo'))).rejects.toThrow('Instance alone is gone: it was disconnected.')
  })

  it('refuses a call while no socket is attached', async () => {
    await expect(alone().instance.callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'INSTANCE_DISCONNECTED',
      message: 'Instance alone is gone: it is not connected.',
    })
  })

  it('is lost when its socket closes before there is a listener', async () => {
    const { instance, socket } = alone()
    const link = instance.attach(socket)
    link?.closed()
    const told = vi.fn()
    instance.onLost(told)
    expect(told).toHaveBeenCalledExactlyOnceWith('its connection was closed.')
    expect(clock.pending).toBe(0)
    // What it is lost by stays the reason when it is closed after that.
    await instance.close()
    await expect(instance.callTool(callOf('echo'))).rejects.toThrow(
      'Instance alone is gone: its connection was closed.',
    )
  })
})

describe('the tools of a worker', () => {
  it('are those of its last hello that names some, and until then those of its registration', async () => {
    const registration = register({ instanceId: 'browser', tools: [{ name: 'registered' }] })
    const say = (tools?: { name: string }[]): void =>
      connect(registration).say({ type: 'hello', ...registration, ...(tools && { tools }) } as never)
    const names = async () => (await instance().listTools()).map(({ name }) => name)
    say()
    expect(await names()).toEqual(['registered'])
    say([{ name: 'said' }])
    expect(await names()).toEqual(['said'])
    say()
    expect(await names()).toEqual(['said'])
    say([])
    expect(await names()).toEqual([])
  })
})

describe('a take-over', () => {
  it('I4: fails the calls of the old socket at once and is not a loss', async () => {
    const registration = register()
    const [first, second] = [connect(registration), connect(registration)]
    first.hello()
    const old = instance()
      .callTool(callOf('hold'))
      .catch((error: unknown) => error)
    second.hello()
    expect(await old).toMatchObject({
      code: 'INSTANCE_DISCONNECTED',
      message: expect.stringContaining('taken over') as string,
    })
    expect(first.closedBy?.code).toBe(WORKER_CLOSE.takenOver)
    expect(entry()?.isConnected).toBe(true)
    expect(lost).toEqual([])
  })

  it('makes the close of the old socket have no effect', async () => {
    const registration = register()
    const [first, second] = [connect(registration), connect(registration)]
    first.hello()
    second.hello()
    const call = instance().callTool(callOf('hold'))
    first.drop()
    const callId = callIdHeardBy(second)
    second.say({ type: 'tool_result', callId, result: { content: [] } })
    expect(await call).toEqual({ content: [] })
    expect(lost).toEqual([])
  })

  it('fails the calls before anybody hears of it, and pings the new socket alone', async () => {
    const { socket: first, heard, instance } = alone()
    const second = { send: vi.fn<(text: string) => void>(), close: vi.fn() }
    const order: unknown[] = []
    instance.connection!.onEvent((event) => order.push(event))
    instance.attach(first)
    const call = callOf('hold')
    const ended = instance.callTool(call).catch((error: unknown) => order.push((error as Error).message))
    instance.connection!.onEvent((event) => {
      order.push(event)
    })
    instance.attach(second)
    await ended
    expect(order).toEqual([
      'connection.opened',
      'connection.opened',
      'connection.takenOver',
      'Instance alone is gone: its connection was taken over.',
    ])
    heard.length = 0
    clock.advance(15_000)
    expect(heard).toEqual([])
    expect(second.send.mock.calls.map(([text]) => (JSON.parse(text) as { type: string }).type)).toEqual([
      'welcome',
      'ping',
    ])
    expect(getEventListeners(call.signal, 'abort')).toEqual([])
    await instance.close()
  })

  it('needs the right secret', () => {
    const registration = register()
    const first = connect(registration)
    first.hello()
    connect({ ...registration, secret: 'guessed' }).hello()
    expect(first.closedBy).toBeUndefined()
    expect(entry()?.isConnected).toBe(true)
  })

  it('S4: drops and counts an answer of the old socket', async () => {
    const registration = register()
    const [first, second] = [connect(registration), connect(registration)]
    first.hello()
    second.hello()
    const call = instance().callTool(callOf('hold'))
    const callId = callIdHeardBy(second)
    const forged = { content: [{ type: 'text', text: 'forged' }] }
    first.say({ type: 'tool_result', callId, result: forged })
    second.say({ type: 'tool_result', callId, result: { content: [{ type: 'text', text: 'true' }] } })
    expect(await call).toMatchObject({ content: [{ text: 'true' }] })
    expect(instance().lateAnswers).toBe(1)
  })

  it('starts the liveness time anew, which the old socket cannot prolong', () => {
    const registration = register()
    const [first, second] = [connect(registration, false), connect(registration, false)]
    first.hello()
    clock.advance(40_000)
    second.hello()
    clock.advance(44_000)
    first.say({ type: 'pong' })
    expect(entry()?.isConnected).toBe(true)
    clock.advance(1000)
    expect(entry()).toBeUndefined()
  })
})

describe('liveness', () => {
  it('I3: a worker that does not answer pings for 45 s is lost, and its calls fail', async () => {
    const worker = connect(register(), false)
    worker.hello()
    const call = instance()
      .callTool(callOf('hold'))
      .catch((error: unknown) => error)
    clock.advance(44_999)
    expect(entry()?.isConnected).toBe(true)
    expect(worker.heard.filter(({ type }) => type === 'ping')).toHaveLength(2)
    clock.advance(1)
    expect(entry()).toBeUndefined()
    expect(lost).toEqual(['browser: It showed no sign of life for 45000 ms.'])
    expect(await call).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    expect(worker.closedBy).toEqual({ code: WORKER_CLOSE.silent, reason: 'The worker showed no sign of life.' })
  })

  it('tells a worker by the close code whether to connect again', async () => {
    const disconnected = connect(register())
    disconnected.hello()
    await instances.disconnect('browser')
    expect(disconnected.closedBy).toEqual({ code: 4410, reason: 'The instance was disconnected.' })
    const left = connect(register())
    left.hello()
    await instances.dispose()
    expect(left.closedBy).toEqual({ code: 1001, reason: 'The server goes away.' })
  })

  it('a worker that answers pings stays connected', async () => {
    const worker = connect(register())
    worker.hello()
    for (let n = 0; n < 20; n += 1) {
      clock.advance(15_000)
      await Promise.resolve()
    }
    expect(entry()?.isConnected).toBe(true)
  })

  it('a worker may ping, too', () => {
    const worker = connect(register())
    worker.hello()
    worker.say({ type: 'ping' })
    expect(worker.heard.at(-1)).toEqual({ type: 'pong' })
  })
})

describe('calls', () => {
  it('S5: an abort is sent as tool_cancel, and the call ends when the worker answers', async () => {
    const worker = connect(register())
    worker.hello()
    const call = callOf('hold')
    const settled = vi.fn()
    const ended = instance()
      .callTool(call)
      .catch((error: unknown) => error)
    void ended.then(settled)
    const callId = callIdHeardBy(worker)
    call.abort()
    expect(worker.heard.at(-1)).toEqual({ type: 'tool_cancel', callId })
    await Promise.resolve()
    expect(settled).not.toHaveBeenCalled()
    worker.say({ type: 'tool_error', callId, code: 'STOPPED', message: 'stopped' })
    expect(await ended).toMatchObject({ code: 'STOPPED' })
  })

  it('S4: a worker that does not stop is not waited for, and its late answer is counted', async () => {
    const worker = connect(register())
    worker.hello()
    const call = callOf('hold')
    const ended = instance()
      .callTool(call)
      .catch((error: unknown) => error)
    const callId = callIdHeardBy(worker)
    call.abort()
    clock.advance(2000)
    expect(await ended).toMatchObject({ name: 'AbortError' })
    worker.say({ type: 'tool_progress', callId, progress: 1 })
    worker.say({ type: 'tool_result', callId, result: { content: [] } })
    expect(instances.lateAnswers).toBe(1)
    expect(call.progress).toEqual([])
    // The count includes workers that are gone.
    await instances.disconnect('browser')
    expect(instances.lateAnswers).toBe(1)
  })

  it('S5: that are cancelled report no more progress, even if the worker sends it', async () => {
    const worker = connect(register())
    worker.hello()
    const call = callOf('hold')
    const ended = instance().callTool(call)
    const callId = callIdHeardBy(worker)
    worker.say({ type: 'tool_progress', callId, progress: 1 })
    call.abort()
    worker.say({ type: 'tool_progress', callId, progress: 2 })
    worker.say({ type: 'tool_result', callId, result: { content: [] } })
    await ended
    expect(call.progress).toEqual([{ progress: 1 }])
  })

  it('that have ended leave nothing: no listener, no timer, and their answers are late', async () => {
    const worker = connect(register())
    worker.hello()
    const timers = clock.pending
    const [answered, cancelled] = [callOf('hold'), callOf('hold')]
    const ended = Promise.allSettled([instance().callTool(answered), instance().callTool(cancelled)])
    const [first, second] = callsHeardBy(worker).map(({ callId }) => callId)
    cancelled.abort()
    expect(clock.pending).toBe(timers + 1)
    for (const callId of [first!, second!]) worker.say({ type: 'tool_result', callId, result: { content: [] } })
    await ended
    expect(clock.pending).toBe(timers)
    expect([answered, cancelled].flatMap(({ signal }) => getEventListeners(signal, 'abort'))).toEqual([])
    const heard = worker.heard.length
    answered.abort()
    for (const callId of [first!, second!]) worker.say({ type: 'tool_error', callId, code: 'E', message: 'late' })
    expect(worker.heard).toHaveLength(heard)
    expect(instance().lateAnswers).toBe(2)
  })

  it('that are aborted before they start are not sent', async () => {
    const worker = connect(register())
    worker.hello()
    const call = callOf('hold')
    call.abort()
    await expect(instance().callTool(call)).rejects.toThrow('given up')
    expect(callsHeardBy(worker)).toEqual([])
  })

  it('of earlier connections that are answered with an error are no late answers', async () => {
    const worker = connect(register())
    worker.hello(['old', 'older'])
    const freed = vi.fn()
    void instance().connection!.freed!()!.then(freed)
    worker.say({ type: 'tool_error', callId: 'old', code: 'STOPPED', message: 'stopped' })
    worker.say({ type: 'tool_progress', callId: 'older', progress: 1 })
    await Promise.resolve()
    expect([freed.mock.calls.length, instance().lateAnswers]).toEqual([0, 0])
    worker.say({ type: 'tool_result', callId: 'older', result: { content: [] } })
    await Promise.resolve()
    expect([freed.mock.calls.length, instance().lateAnswers]).toEqual([1, 1])
    expect(instance().connection!.freed!()).toBeUndefined()
  })

  it('of earlier connections are those that the last hello names, and its socket ends them', async () => {
    const registration = register()
    const [first, second] = [connect(registration), connect(registration)]
    first.hello(['old'])
    const looksAgain = vi.fn()
    const freed = vi.fn()
    void instance().connection!.freed!()!.then(looksAgain)
    second.hello(['other'])
    await Promise.resolve()
    // Who has waited for the first ones waits for these.
    expect(looksAgain).toHaveBeenCalledOnce()
    void instance().connection!.freed!()!.then(freed)
    second.say({ type: 'tool_result', callId: 'other', result: { content: [] } })
    await Promise.resolve()
    expect(freed).toHaveBeenCalledOnce()
  })

  it('of earlier connections are not ended by an answer of the old socket', async () => {
    const { socket, instance } = alone()
    const first = instance.attach(socket)
    const second = instance.attach({ ...socket }, undefined, ['other'])
    const answer = { type: 'tool_result' as const, callId: 'other', result: { content: [] } }
    first?.receive(answer)
    expect(instance.connection!.freed!()).toBeInstanceOf(Promise)
    second?.receive(answer)
    expect(instance.connection!.freed!()).toBeUndefined()
    await instance.close()
  })

  it('include their task and command', () => {
    const worker = connect(register())
    worker.hello()
    void instance()
      .callTool({ ...callOf('click', { at: 1 }), taskId: 'task_1', commandId: 'cmd_1' })
      .catch(() => undefined)
    expect(callsHeardBy(worker)).toEqual([
      {
        type: 'tool_call',
        callId: expect.stringMatching(/^call_[\w-]{8}_1$/) as string,
        name: 'click',
        arguments: { at: 1 },
        taskId: 'task_1',
        commandId: 'cmd_1',
      },
    ])
  })

  it('a worker that was lost must register again, and may keep its id', async () => {
    const worker = connect(register())
    worker.hello()
    worker.drop()
    expect(lost).toEqual(['browser: its connection was closed.'])
    const again = connect(register())
    again.hello()
    expect(entry()?.isConnected).toBe(true)
  })
})
