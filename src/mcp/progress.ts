/** Progress of a call that blocks (MCP, "Progress"): many clients start their time limit again when they are notified of some. */
import type { ServerContext } from '@modelcontextprotocol/server'
import { elapsedMs, type Clock } from '../clock.js'
import { toOneLine } from '../control-characters.js'
import { cutText, lastChars } from '../preview.js'
import type { OutputUpdate } from '../tools/tool.js'

/** How often a client is notified, in ms. Clients' limits are 30 seconds and more. */
const INTERVAL_MS = 10_000

/** How long what a task writes is gathered, in ms. */
const GATHER_MS = 1000

/** How much of it is kept meanwhile, and the most that a client is shown of its last line, in characters. */
const KEPT_CHARS = 1000
const LINE_CHARS = 200

/** The notifications of one call. */
export interface CallProgress {
  /** Notifies the client of what a task has written, soon; undefined where the client wants no notifications. */
  readonly onUpdate: ((update: OutputUpdate) => void) | undefined
  stop(): void
}

/** Notifies the client while a call is not answered, if its request has a progress token. */
export function reportProgress({ mcpReq: { _meta, notify } }: ServerContext, clock: Clock): CallProgress {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return { onUpdate: undefined, stop: () => undefined }
  const startedAt = elapsedMs(clock)
  let timer: unknown
  let written = ''
  let isGathering = false
  const send = (progress: number, message: string): void => {
    // Sending fails when the client has just disconnected, which ends the call.
    notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => undefined)
    wait()
  }
  const wait = (): void => {
    timer = clock.setTimeout(() => {
      const seconds = Math.round((elapsedMs(clock) - startedAt) / 1000)
      send(seconds, `Waiting for ${seconds} s.`)
    }, INTERVAL_MS)
  }
  const sendOutput = (): void => {
    const line = lastLine(written)
    written = ''
    isGathering = false
    send((elapsedMs(clock) - startedAt) / 1000, line)
  }
  wait()
  return {
    onUpdate: ({ text }) => {
      written = lastChars(written + lastChars(text, KEPT_CHARS), KEPT_CHARS)
      if (isGathering || written.trim() === '') return
      isGathering = true
      clock.clearTimeout(timer)
      timer = clock.setTimeout(sendOutput, GATHER_MS)
    },
    stop: () => clock.clearTimeout(timer),
  }
}

/** The last line of a text that is not blank. */
function lastLine(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? ''
  return cutText(toOneLine(line).trim(), LINE_CHARS)
}
