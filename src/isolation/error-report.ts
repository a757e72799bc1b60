/** Reports exceptions of the host's callbacks. Such an exception never changes the state of a manager (promise A2). */
import { toOneLine } from '../data/control-characters.js'
import { callContext } from './call-context.js'
import { callIsolated } from './isolated-call.js'

/** Where a reported error comes from. */
export interface ErrorSource {
  /** The kind of callback that threw. Or, for `late-result`, `turn-timeout` and similar values, the kind of problem that the error describes. */
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
  /** The id of the task that the error is about, if any. */
  readonly taskId?: string
  /** The owner that the error is about, if any. */
  readonly owner?: string
  /** The id of the delivery that the error is about, if any. */
  readonly deliveryId?: string
}

/** Called with each exception of a callback, and with each result that arrived after its task had ended. Exceptions of this function are ignored. */
export type OnError = (error: unknown, from: ErrorSource) => void

/**
 * The default `onError`, which writes to `console.error`. A late result is normal after a cancellation, so it is written as one line without a stack.
 */
export const reportToConsole: OnError = (error, from) => {
  const isLine = from.source === 'late-result' && error instanceof Error
  const shown = isLine ? toOneLine(error.message) : error
  console.error(`[agent-tasks] ${from.source}${aboutOf(from)}:`, shown)
}

const aboutOf = ({ taskId, owner, deliveryId }: ErrorSource): string => {
  const task = taskId === undefined ? '' : ` of task ${taskId}`
  const of = owner === undefined ? '' : ` of owner ${toOneLine(owner)}`
  return `${task}${of}${deliveryId === undefined ? '' : ` (${deliveryId})`}`
}

/** Returns an `onError` that never throws, and that calls the host's `onError` in the current context. Exceptions of the host's `onError` are ignored. */
export function isolateReport(onError: OnError): OnError {
  const context = callContext()
  return (error, from) => {
    callIsolated(
      (): unknown => context.runInAsyncScope(() => onError(error, from)),
      () => undefined,
    )
  }
}
