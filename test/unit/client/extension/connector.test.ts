/** When the extension connects, tries again and stops. */
import { expect, it } from 'vitest'
import type { connectInstance } from '../../../../src/client/index.js'
import type { AgentTasksError } from '../../../../src/errors.js'
import type { ConnectionState } from '../../../../src/client/extension/connection-state.js'
import { createConnector } from '../../../../src/client/extension/connector.js'
import { DEFAULT_SETTINGS, type Settings } from '../../../../src/client/extension/settings.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { settle } from '../../../support/scripted-sockets.js'
import { TaskServerError, ConnectionError } from '../../../../src/client/client-errors.js'

type Connect = typeof connectInstance

/** An attempt to connect, which the test decides. */
function attemptOf(url: string, options: Parameters<Connect>[1]) {
  let succeed: (instance: Awaited<ReturnType<Connect>>) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  let end: (error: AgentTasksError | undefined) => void = () => undefined
  const promise = new Promise<Awaited<ReturnType<Connect>>>((onSuccess, onFailure) => {
    succeed = onSuccess
    fail = onFailure
  })
  const closed = new Promise<AgentTasksError | undefined>((resolve) => (end = resolve))
  const attempt = {
    url,
    options,
    promise,
    fail,
    end,
    isClosed: false,
    connect: async () => {
      options.onConnection?.(true)
      const close = async (): Promise<void> => {
        attempt.isClosed = true
        options.onConnection?.(false)
        end(undefined)
      }
      const instance = { instanceId: options.id ?? '', isConnected: true, runningCalls: 0, closed, close }
      succeed({ ...instance, [Symbol.asyncDispose]: close })
      await settle()
    },
  }
  return attempt
}

function setUp() {
  const clock = createManualClock()
  const attempts: ReturnType<typeof attemptOf>[] = []
  const states: ConnectionState[] = []
  const ended: Settings[] = []
  const connector = createConnector({
    connect: (url, options) => {
      const attempt = attemptOf(url, options)
      attempts.push(attempt)
      return attempt.promise
    },
    tools: [],
    clock,
    onState: (state) => states.push(state),
    onEnded: (settings) => ended.push(settings),
  })
  const words = (): string[] => states.map(({ phase, problem }) => (problem ? `${phase} ${problem.code}` : phase))
  return { clock, attempts, ended, connector, words }
}

const refused = (): ConnectionError => new ConnectionError('CONNECTION_FAILED', 'refused')

it('connects as the settings say, and pings so often that a silent connection is lost after 30 s', async () => {
  const { attempts, connector, words } = setUp()
  connector.apply({ ...DEFAULT_SETTINGS, token: 'secret' })
  await settle()
  await attempts[0]?.connect()
  expect(attempts.map(({ url }) => url)).toEqual(['http://127.0.0.1:3300'])
  expect(attempts[0]?.options).toMatchObject({ id: 'browser', token: 'secret', heartbeatMs: 15_000 })
  expect(words()).toEqual(['connecting', 'connected'])
})

it('E3: tries again, less and less often, and says why it is not connected', async () => {
  const { attempts, connector, clock, words } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  expect(attempts[0]?.options).not.toHaveProperty('token')
  for (const [tries, waitMs] of [500, 1000, 2000, 4000, 8000, 15_000, 15_000].entries()) {
    attempts[tries]?.fail(refused())
    await settle()
    clock.advance(waitMs - 1)
    await settle()
    expect(attempts).toHaveLength(tries + 1)
    clock.advance(1)
    await settle()
    expect(attempts).toHaveLength(tries + 2)
  }
  await attempts.at(-1)?.connect()
  expect(words().slice(-2)).toEqual(['connecting CONNECTION_FAILED', 'connected'])
  expect(clock.pending).toBe(0)
})

it('E3: begins with the shortest wait again after it has been connected', async () => {
  const { attempts, connector, clock } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  for (const waitMs of [500, 1000]) {
    await settle()
    attempts.at(-1)?.fail(refused())
    await settle()
    clock.advance(waitMs)
  }
  await settle()
  await attempts.at(-1)?.connect()
  attempts.at(-1)?.end(refused())
  await settle()
  clock.advance(499)
  await settle()
  expect(attempts).toHaveLength(3)
  clock.advance(1)
  await settle()
  expect(attempts).toHaveLength(4)
  connector.apply({ ...DEFAULT_SETTINGS, isOn: false })
})

it('leaves what only the person can end to the alarm, and tries once at each', async () => {
  const { attempts, connector, clock } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  attempts[0]?.fail(new TaskServerError('UNAUTHORIZED', 'token', 401))
  await settle()
  expect(clock.pending).toBe(0)
  connector.wake()
  connector.wake()
  await settle()
  expect(attempts).toHaveLength(2)
  await attempts[1]?.connect()
  connector.wake()
  await settle()
  expect(attempts).toHaveLength(2)
})

it('shows that a connection is lost and back', async () => {
  const { attempts, connector, words } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  const [attempt] = attempts
  await attempt?.connect()
  // Such as the exception of a listener: it ends nothing.
  attempt?.options.onError?.(new Error('odd'))
  attempt?.options.onConnection?.(false)
  attempt?.options.onError?.(new ConnectionError('CONNECTION_LOST', 'lost'))
  attempt?.options.onConnection?.(true)
  expect(words().slice(1)).toEqual(['connected', 'connecting', 'connecting CONNECTION_LOST', 'connected'])
})

it.each(['TAKEN_OVER', 'INSTANCE_DISCONNECTED'])('stops after %s until the person wants it again', async (code) => {
  const { attempts, connector, ended, words, clock } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  await attempts[0]?.connect()
  attempts[0]?.end(new TaskServerError(code, code))
  await settle()
  expect(words().at(-1)).toBe(`stopped ${code}`)
  expect(ended).toEqual([DEFAULT_SETTINGS])
  connector.apply({ ...DEFAULT_SETTINGS, isOn: false })
  connector.wake()
  await settle()
  expect([attempts.length, clock.pending, words().at(-1)]).toEqual([1, 0, `stopped ${code}`])
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  expect(attempts).toHaveLength(2)
})

it('registers anew when the server has refused the connection', async () => {
  const { attempts, connector, words } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  await attempts[0]?.connect()
  attempts[0]?.end(new TaskServerError('UNAUTHORIZED', 'token'))
  await settle()
  expect(words().at(-1)).toBe('connecting UNAUTHORIZED')
  connector.wake()
  await settle()
  expect(attempts).toHaveLength(2)
})

it('ends the connection before it connects with other settings, and says nothing about the old one', async () => {
  const { attempts, connector, words } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  await attempts[0]?.connect()
  connector.apply({ ...DEFAULT_SETTINGS, name: 'other' })
  await settle()
  expect(attempts.map(({ options, isClosed }) => [options.id, isClosed])).toEqual([
    ['browser', true],
    ['other', false],
  ])
  attempts[0]?.options.onError?.(new Error('late'))
  expect(words()).toEqual(['connecting', 'connected', 'connecting'])
})

it('closes a connection that comes after the person has stopped it', async () => {
  const { attempts, connector, words, clock } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  connector.apply({ ...DEFAULT_SETTINGS, isOn: false })
  await attempts[0]?.connect()
  expect(attempts[0]?.isClosed).toBe(true)
  connector.wake()
  await settle()
  expect([attempts.length, clock.pending, words()]).toEqual([1, 0, ['connecting', 'stopped']])
})

it('forgets an attempt that fails after the person has stopped it', async () => {
  const { attempts, connector, words, clock } = setUp()
  connector.apply(DEFAULT_SETTINGS)
  connector.apply({ ...DEFAULT_SETTINGS, isOn: false })
  connector.apply(DEFAULT_SETTINGS)
  await settle()
  connector.apply({ ...DEFAULT_SETTINGS, isOn: false })
  attempts[0]?.fail(refused())
  await settle()
  expect([attempts.length, clock.pending, words().at(-1)]).toEqual([1, 0, 'stopped'])
})
