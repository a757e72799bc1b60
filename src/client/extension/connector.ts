/** Keeps the browser connected to a server, as an instance, for as long as the person wants. */
import type { connectInstance, ConnectedInstance, ConnectInstanceOptions } from '../connect-instance.js'
import type { Clock } from '../../system/clock.js'
import { ENDING_CODES, problemOf, STOPPED, type ConnectionState, type Problem } from './connection-state.js'
import type { Settings } from './settings.js'

/**
 * After this time without a message, the extension pings the server, in ms. After twice this time, the connection counts as lost. The server pings at
 * the same interval.
 */
const HEARTBEAT_MS = 15_000

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000

export interface ConnectorOptions {
  readonly connect: typeof connectInstance
  readonly tools: ConnectInstanceOptions['tools']
  readonly clock: Clock
  readonly onState: (state: ConnectionState) => void
  /** Called when the server has ended the connection on purpose. The extension connects again only when the person asks for it. */
  readonly onEnded: (settings: Settings) => void
}

export interface Connector {
  /** Ends the present connection. Connects with the new settings if their `isOn` is true. */
  apply(settings: Settings): void
  /** Tries to connect at once, unless the browser is connected or an attempt is running. */
  readonly wake: () => void
}

export function createConnector({ connect, tools, clock, onState, onEnded }: ConnectorOptions): Connector {
  let settings: Settings | undefined
  /** Grows with each change of the settings. An attempt with earlier settings ends without a report. */
  let generation = 0
  let instance: ConnectedInstance | undefined
  let isTrying = false
  let failures = 0
  let timer: unknown
  let closing = Promise.resolve()

  const fail = (problem: Problem): void => onState({ phase: 'connecting', problem })

  async function attempt(wanted: Settings): Promise<void> {
    const mine = generation
    const isMine = (): boolean => generation === mine
    let isConnected = false
    isTrying = true
    await closing
    if (!isMine()) return
    try {
      const connected = await connect(wanted.url, {
        tools,
        clock,
        id: wanted.name,
        heartbeatMs: HEARTBEAT_MS,
        ...(wanted.token !== '' && { token: wanted.token }),
        onConnection: (now) => {
          isConnected = now
          if (isMine()) onState({ phase: now ? 'connected' : 'connecting' })
        },
        onError: (error) => {
          if (isMine() && !isConnected) fail(problemOf(error, wanted))
        },
      })
      if (!isMine()) {
        await connected.close()
        return
      }
      isTrying = false
      failures = 0
      instance = connected
      void connected.closed.then((error) => {
        if (isMine() && error !== undefined) endedBy(error, wanted)
      })
    } catch (error) {
      if (isMine()) tryLater(problemOf(error, wanted))
    }
  }

  function endedBy(error: unknown, wanted: Settings): void {
    instance = undefined
    const problem = problemOf(error, wanted)
    if (!ENDING_CODES.includes(problem.code)) {
      tryLater(problem)
      return
    }
    settings = undefined
    onState({ phase: 'stopped', problem })
    onEnded(wanted)
  }

  function tryLater(problem: Problem): void {
    isTrying = false
    fail(problem)
    if (problem.isLasting) return
    const waitMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures)
    failures += 1
    timer = clock.setTimeout(wake, waitMs)
  }

  function wake(): void {
    if (settings === undefined || instance !== undefined || isTrying) return
    clock.clearTimeout(timer)
    void attempt(settings)
  }

  return {
    apply: (next) => {
      generation += 1
      clock.clearTimeout(timer)
      const ended = instance
      instance = undefined
      isTrying = false
      failures = 0
      if (ended !== undefined) closing = ended.close()
      const wasWanted = settings !== undefined
      settings = next.isOn ? next : undefined
      if (settings !== undefined) {
        onState({ phase: 'connecting' })
        void attempt(settings)
      } else if (wasWanted) onState(STOPPED)
    },
    wake,
  }
}
