/** Converts the reason of a cancellation: to text for the record of the task, and to the abort reason of the signal that its run receives. */
import { cutText } from '../data/cut-text.js'
import type { CancelOptions } from '../protocol/async-tasks.js'
import { AgentTasksError } from '../errors.js'
import { messageOf, readField } from '../protocol/outcomes.js'
import { previewText } from '../features/output/bounded-text.js'

/** The maximum length of a reason in a record, in characters. */
const MAX_REASON_CHARS = 1000

/** The maximum length of a reason in a line of a list, in characters. */
const SHOWN_REASON_CHARS = 60

/** Converts the argument of a cancellation to options. A string becomes the reason. */
export const toCancelOptions = (options: CancelOptions | string): CancelOptions =>
  typeof options === 'string' ? { reason: options } : options

/** Shortens a reason for the record of a task. Returns undefined for a reason without words. */
export function toCancelReason(reason: string | undefined): string | undefined {
  return reason === undefined || reason.trim() === '' ? undefined : cutText(reason, MAX_REASON_CHARS)
}

/** Returns why a signal was aborted, in words. Returns undefined if the signal has only the platform's default reason, which says nothing. */
export function reasonOfAbort(signal: AbortSignal): string | undefined {
  const given = readReason(signal)
  const text = typeof given === 'string' ? given : messageOf(given)
  return text === defaultMessage() ? undefined : toCancelReason(text)
}

/** Returns the abort reason for the signal of a run; undefined to use the platform's default. */
export function toAbortReason(reason: string | undefined): DOMException | undefined {
  return reason === undefined ? undefined : new DOMException(reason, 'AbortError')
}

/** Returns the reason with which the run of a task is aborted when its process suspends. */
export function suspension(): AgentTasksError {
  const error = new AgentTasksError(
    'SUSPENDED',
    'The process is closing. The task is kept in the store, and the next process goes on with it or reports it.',
  )
  return Object.assign(error, { name: 'AbortError' })
}

/** Whether a signal has aborted because its process suspends, so that the task has not ended. */
export const isSuspension = (signal: AbortSignal): boolean =>
  signal.aborted && readField(signal.reason, 'code') === 'SUSPENDED'

/** Returns the reason as text to append to a status, such as `, because: no longer needed`; `''` if there is none. */
export function cancelNote({ cancelReason }: { readonly cancelReason?: string | undefined }): string {
  if (cancelReason === undefined) return ''
  return `, because: ${previewText(cancelReason.trim().replace(/\s+/g, ' '), SHOWN_REASON_CHARS)}`
}

/** Describes a cancellation in a sentence, with its reason if there is one. */
export function cancellationText(
  what: string,
  { cancelReason }: { readonly cancelReason?: string | undefined },
): string {
  return cancelReason === undefined ? `${what} was cancelled.` : `${what} was cancelled, because: ${cancelReason}`
}

/** The host may register any object as a controller, so reading the reason of its signal may throw. */
function readReason(signal: AbortSignal): unknown {
  try {
    return signal.reason
  } catch {
    return undefined
  }
}

/** The platform's message for an `abort()` without a reason. */
const defaultMessage = (): string => (AbortSignal.abort().reason as Error).message
