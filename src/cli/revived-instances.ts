/** Restarts the MCP servers of `serve` when their connection is lost. The delay grows with each attempt (back-off). Stops when the server closes. */
import { createReconnection } from '../client/reconnection.js'
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import type { Log } from '../server/http/log.js'
import type { InstanceManager } from '../command-tasks/instances/instance-manager.js'
import type { Instance } from '../command-tasks/instances/instance.js'

/** The first and the maximum delay, in ms. */
const BACK_OFF = { initialMs: 1000, maxMs: 60_000, jitter: 0 } as const

/** If a connection has lasted for this time, in ms, the next delay is the first one again. */
const STABLE_MS = 60_000

export interface RevivalOptions {
  readonly instances: InstanceManager
  /** For each instance that is restarted, by id: the function that starts it. */
  readonly starts: ReadonlyMap<string, () => Promise<Instance>>
  readonly clock: Clock
  readonly log: Log
}

interface Lost {
  attempts: number
  connectedAt: number
  timer?: LongTimer
}

/**
 * Restarts lost instances from now on.
 * @returns a function that stops the restarts; call it before the instances are disconnected
 */
export function reviveInstances({ instances, starts, clock, log }: RevivalOptions): () => void {
  const delayOf = createReconnection(BACK_OFF)
  const all = new Map<string, Lost>(
    Array.from(starts.keys(), (id) => [id, { attempts: 0, connectedAt: elapsedMs(clock) }]),
  )
  let isStopped = false

  function plan(id: string, lost: Lost, problem: string, error?: unknown): void {
    lost.attempts += 1
    const delayMs = delayOf(lost.attempts, 0) ?? BACK_OFF.maxMs
    log('warn', `instance ${id} ${problem}; it is started again in ${delayMs / 1000} s`, error)
    lost.timer = setLongTimeout(clock, () => void start(id, lost), delayMs)
  }

  async function start(id: string, lost: Lost): Promise<void> {
    let instance: Instance | undefined
    try {
      instance = await starts.get(id)?.()
      if (instance === undefined) return
      if (isStopped) {
        await instance.close()
        return
      }
      instances.connect(instance)
      lost.connectedAt = elapsedMs(clock)
      log('info', `instance ${id} is connected again`)
    } catch (error) {
      await instance?.close().catch(() => undefined)
      if (!isStopped) plan(id, lost, 'did not start', error)
    }
  }

  const unsubscribe = instances.onDisconnect((id, reason) => {
    const lost = all.get(id)
    if (lost === undefined) return
    // If the program ended soon after its start, the delay is not reset.
    if (elapsedMs(clock) - lost.connectedAt >= STABLE_MS) lost.attempts = 0
    plan(id, lost, `was lost: ${reason.replace(/\.$/, '')}`)
  })
  return () => {
    isStopped = true
    unsubscribe()
    for (const { timer } of all.values()) clearLongTimeout(clock, timer)
  }
}
