/**
 * Measures tasks in bytes of JSON: their submissions and results. Large results are measured only once. This is safe because results are frozen; the
 * task and its messages share the same object.
 */
import { jsonBytes } from '../data/json-size.js'

/** The maximum sizes, in bytes of JSON. */
export interface TaskByteLimits {
  /** The maximum size of the result of one command. */
  readonly maxResultBytes: number
  /** The maximum size of a submission. */
  readonly maxSubmissionBytes: number
  /** The maximum size of one task: its submission and its results. */
  readonly maxTaskBytes: number
  /** The maximum size of all tasks together. */
  readonly maxBytes: number
}

const MIB = 1024 * 1024

/** The maximum size of a row in a store, in bytes (64 MiB). */
const MAX_ROW_BYTES = 64 * MIB

/** Returns the limits of a manager, with defaults. With a store, submissions and results must also fit into a row. */
export function byteLimits(
  options: Partial<Omit<TaskByteLimits, 'maxSubmissionBytes'>>,
  hasStore: boolean,
): TaskByteLimits {
  const { maxResultBytes = 16 * MIB, maxTaskBytes = 64 * MIB, maxBytes = 256 * MIB } = options
  const maxRowBytes = hasStore ? MAX_ROW_BYTES : Infinity
  return {
    maxResultBytes: Math.min(maxResultBytes, maxRowBytes),
    maxSubmissionBytes: Math.min(maxTaskBytes, maxRowBytes),
    maxTaskBytes,
    maxBytes,
  }
}

/** The byte limits of tasks, and the room that is left. */
export interface TaskBudget {
  readonly limits: TaskByteLimits
  /** Reserves bytes, and drops ended tasks if that is necessary. Returns false and reserves nothing if the unfinished tasks leave too little room. */
  take(bytes: number): boolean
}

/** For a task that another process has already accepted under its own limits. */
export const UNLIMITED: TaskBudget = {
  limits: { maxResultBytes: Infinity, maxSubmissionBytes: Infinity, maxTaskBytes: Infinity, maxBytes: Infinity },
  take: () => true,
}

const measured = new WeakMap<object, number>()

/** The size from which results are remembered, in bytes. Measuring a smaller result is faster than a look-up. */
const MIN_REMEMBERED = 256

/**
 * The size of a result, in bytes of JSON.
 * @param most if the result is larger than this, the function stops measuring and returns some number greater than `most`
 */
export function resultBytes(result: unknown, most = Infinity): number {
  const known = typeof result === 'object' && result !== null ? measured.get(result) : undefined
  if (known !== undefined) return known
  const bytes = jsonBytes(result, most)
  const isRemembered = bytes <= most && bytes >= MIN_REMEMBERED
  if (isRemembered && typeof result === 'object' && result !== null) measured.set(result, bytes)
  return bytes
}
