/** Reports exceptions from the host's callbacks. An exception never changes the state of a manager (promise A2). */
import { toOneLine } from '../text/control-characters.js'
import { callIsolated } from './isolated-call.js'

/** The origin of a reported error. */
export interface ErrorSource {
  /** The kind of callback that threw, or the kind of event that was dropped or looks wrong. */
  readonly source:
    | 'handler'
    | 'stream'
    | 'abort-listener'
    | 'actor-observer'
    | 'inspector'
    | 'runner'
    | 'late-result'
    | 'busy'
    | 'delivery'
    | 'delivery-timeout'
    | 'turn-timeout'
    | 'idle'
    | 'progress'
    | 'output'
    | 'schedule'
    | 'store'
    | 'page'
  /** The task concerned, if any. */
  readonly taskId?: string
  /** The owner concerned, if any. */
  readonly owner?: string
  /** The delivery concerned, if any. */
  readonly deliveryId?: string
}

/** Called with each exception from a callback, and with each result that arrived too late. Its own exceptions are ignored. */
export type OnError = (error: unknown, from: ErrorSource) => void

/** The default `onError`: writes to `console.error`, so that errors are visible. A late result is normal after a cancel, so it is one line. */
export const reportToConsole: OnError = (error, from) => {
  const isLine = from.source === 'late-result' && error instanceof Error
  const shown = isLine ? toOneLine(error.message) : error
  console.error(`[agent-tasks] ${from.source}${from.taskId === undefined ? '' : ` of task ${from.taskId}`}:`, shown)
}

/** Wraps the host's `onError` so that its own exceptions are ignored. */
export function isolateReport(onError: OnError): OnError {
  return (error, from) => {
    callIsolated(
      (): unknown => onError(error, from),
      () => undefined,
    )
  }
}
