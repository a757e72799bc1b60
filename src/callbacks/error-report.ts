/** Reports of exceptions in the host's callbacks, which change nothing else (A2). */
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
  /** The task that it concerns, if any. */
  readonly taskId?: string
  /** The owner that it concerns, if any. */
  readonly owner?: string
  /** The delivery that it concerns, if any. */
  readonly deliveryId?: string
}

/** Called with every exception of a callback, and with results that came too late. What it throws is ignored. */
export type OnError = (error: unknown, from: ErrorSource) => void

/** The default `onError`: writes to `console.error`, so that no error is hidden. */
export const reportToConsole: OnError = (error, from) => {
  console.error(`[agent-tasks] ${from.source}${from.taskId === undefined ? '' : ` of task ${from.taskId}`}:`, error)
}

/** The host's `onError`, with its own exceptions ignored. */
export function isolateReport(onError: OnError): OnError {
  return (error, from) => {
    callIsolated(
      (): unknown => onError(error, from),
      () => undefined,
    )
  }
}
