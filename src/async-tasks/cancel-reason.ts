/** The reason of a cancellation, as text for the record and as the abort reason for the run. */
import { cutText } from '../text/cut-text.js'
import type { CancelOptions } from '../protocol/async-tasks.js'
import { messageOf } from '../protocol/outcomes.js'
import { previewText } from './output/bounded-text.js'

/** The maximum length of a reason in a record, in characters. */
const MAX_REASON_CHARS = 1000

/** The maximum length of a reason in a line of a list, in characters. */
const SHOWN_REASON_CHARS = 60

/** Returns the options of a cancellation. A text is its reason. */
export const toCancelOptions = (options: CancelOptions | string): CancelOptions =>
  typeof options === 'string' ? { reason: options } : options

/** The reason for the record; undefined if it contains no words. */
export function toCancelReason(reason: string | undefined): string | undefined {
  return reason === undefined || reason.trim() === '' ? undefined : cutText(reason, MAX_REASON_CHARS)
}

/** The reason of an aborted signal, if it is text or an error with a message other than the platform's default. */
export function reasonOfAbort(signal: AbortSignal): string | undefined {
  const given = readReason(signal)
  const text = typeof given === 'string' ? given : messageOf(given)
  return text === defaultMessage() ? undefined : toCancelReason(text)
}

/** The abort reason for a run; undefined to use the platform's default. */
export function toAbortReason(reason: string | undefined): DOMException | undefined {
  return reason === undefined ? undefined : new DOMException(reason, 'AbortError')
}

/** The reason in one line, to follow the status; `''` if there is none. */
export function cancelNote({ cancelReason }: { readonly cancelReason?: string | undefined }): string {
  if (cancelReason === undefined) return ''
  return `, because: ${previewText(cancelReason.trim().replace(/\s+/g, ' '), SHOWN_REASON_CHARS)}`
}

/** The cancellation as a sentence, with its reason if there is one. */
export function cancellationText(
  what: string,
  { cancelReason }: { readonly cancelReason?: string | undefined },
): string {
  return cancelReason === undefined ? `${what} was cancelled.` : `${what} was cancelled, because: ${cancelReason}`
}

/** A registered controller may be any object with a signal. */
function readReason(signal: AbortSignal): unknown {
  try {
    return signal.reason
  } catch {
    return undefined
  }
}

/** The platform's message for an `abort()` without a reason. */
const defaultMessage = (): string => (AbortSignal.abort().reason as Error).message
