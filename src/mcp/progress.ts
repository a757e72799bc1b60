/** Progress of a call that blocks (MCP, "Progress"): many clients start their time limit again when they are notified of some. */
import type { ServerContext } from '@modelcontextprotocol/server'
import { elapsedMs, type Clock } from '../clock.js'

/** How often a client is notified, in ms. Clients' limits are 30 seconds and more. */
const INTERVAL_MS = 10_000

/**
 * Notifies the client while a call is not answered, if its request has a progress token.
 * @returns stops it
 */
export function reportProgress({ mcpReq: { _meta, notify } }: ServerContext, clock: Clock): () => void {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return () => undefined
  const startedAt = elapsedMs(clock)
  let timer: unknown
  const wait = (): void => {
    timer = clock.setTimeout(() => {
      const seconds = Math.round((elapsedMs(clock) - startedAt) / 1000)
      const params = { progressToken, progress: seconds, message: `Waiting for ${seconds} s.` }
      // Sending fails when the client has just disconnected, which ends the call.
      notify({ method: 'notifications/progress', params }).catch(() => undefined)
      wait()
    }, INTERVAL_MS)
  }
  wait()
  return () => clock.clearTimeout(timer)
}
