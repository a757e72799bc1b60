/** Where exceptions of the host's own callbacks go: they change nothing else (A2). */
import { callIsolated } from './isolated-call.js'

/** What threw, and for which task if it was about one. */
export interface ErrorSource {
  /** Whose code it was, or what was dropped. */
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
    | 'progress'
  /** The task it was about. */
  readonly taskId?: string
  /** The owner it was about. */
  readonly owner?: string
  /** The delivery it was about. */
  readonly deliveryId?: string
}

/** Told of every exception that was caught, and of results that came too late. */
export type OnError = (error: unknown, from: ErrorSource) => void

/** Writes to the console, so that nothing is swallowed unless the host says so. */
export const reportToConsole: OnError = (error, from) => {
  console.error(`[agent-tasks] ${from.source}${from.taskId === undefined ? '' : ` of task ${from.taskId}`}:`, error)
}

/** The host's `onError`, which may itself throw: that is dropped, as there is nobody left to tell. */
export function isolateReport(onError: OnError): OnError {
  return (error, from) => {
    // Reporting is the last resort.
    callIsolated(
      (): unknown => onError(error, from),
      () => undefined,
    )
  }
}
