/** Restarts the MCP servers of `serve` when they are lost, with a back-off, until the server closes. */
import { createReconnection } from '../client/reconnection.js'
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import type { Log } from '../http/log.js'
import type { InstanceManager } from '../instances/instance-manager.js'
import type { Instance } from '../instances/instance.js'

/** The first and the longest delay, in ms. */
const BACK_OFF = { initialMs: 1000, maxMs: 60_000, jitter: 0 } as const

/** After a connection of at least this time, in ms, the back-off starts again at the first delay. */
const STABLE_MS = 60_000

export interface RevivalOptions {
  readonly instances: InstanceManager
  /** The function that starts each instance, by id. Other instances are not restarted. */
  readonly starts: ReadonlyMap<string, () => Promise<Instance>>
  readonly clock: Clock
  readonly log: Log
}

interface Lost {
  attempts: number
  connectedAt: number
  timer?: LongTimer
}

/** @returns a function that stops it; call it before the instances are disconnected */
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
    // A program that ends soon after each start keeps its longer delay.
    if (elapsedMs(clock) - lost.connectedAt >= STABLE_MS) lost.attempts = 0
    plan(id, lost, `was lost: ${reason.replace(/\.$/, '')}`)
  })
  return () => {
    isStopped = true
    unsubscribe()
    for (const { timer } of all.values()) clearLongTimeout(clock, timer)
  }
}
