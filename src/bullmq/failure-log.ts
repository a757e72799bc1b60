/** Logs the errors of Redis. A Redis that refuses commands refuses all of them, so each kind of failure is logged once a minute. */
import { describeFailure } from '../protocol/outcomes.js'

/** The interval at which the same failure is logged, in ms. */
const AGAIN_MS = 60_000

/**
 * Logs a failure, unless the same failure was logged less than a minute ago. Failures are the same if their kind is, and the code of Redis, such as
 * `READONLY`.
 * @param subject the beginning of the line
 */
export type LogFailure = (kind: string, subject: string, error: unknown) => void

/** @param now returns the time in ms, on a clock that nobody can set */
export function failureLog(log: (line: string) => void, now: () => number = () => performance.now()): LogFailure {
  const logged = new Map<string, { readonly at: number; leftOut: number }>()
  return (kind, subject, error) => {
    const text = describeFailure(error)
    const key = `${kind} ${/^[A-Z]{2,}\b/.exec(text)?.[0] ?? ''}`
    const last = logged.get(key)
    if (last !== undefined && now() - last.at < AGAIN_MS) {
      last.leftOut += 1
      return
    }
    logged.set(key, { at: now(), leftOut: 0 })
    const times = last === undefined || last.leftOut === 0 ? '' : ` (${last.leftOut} more since the last line)`
    log(`${subject}: ${text}${times}`)
  }
}
