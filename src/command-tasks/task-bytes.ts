/**
 * The sizes of tasks, in bytes of JSON: their submissions and their results. A large result is measured once and then recognized by its identity,
 * because it is frozen and shared by the task and its messages.
 */
import { jsonBytes } from '../json/json-size.js'

/** The maximum sizes, in bytes of JSON. */
export interface TaskByteLimits {
  /** The result of one command. */
  readonly maxResultBytes: number
  /** A submission. */
  readonly maxSubmissionBytes: number
  /** One task: its submission and its results. */
  readonly maxTaskBytes: number
  /** All tasks together. */
  readonly maxBytes: number
}

const MIB = 1024 * 1024

/** The maximum size of a row in a store. */
const MAX_ROW_BYTES = 64 * MIB

/** The limits of a manager, with defaults. */
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

/** The byte budget of a task. */
export interface TaskBudget {
  readonly limits: TaskByteLimits
  /** Makes room by dropping ended tasks. Returns false, without reserving bytes, when the other tasks are too large. */
  take(bytes: number): boolean
}

/** For a task that another process has accepted. */
export const UNLIMITED: TaskBudget = {
  limits: { maxResultBytes: Infinity, maxSubmissionBytes: Infinity, maxTaskBytes: Infinity, maxBytes: Infinity },
  take: () => true,
}

const measured = new WeakMap<object, number>()

/** Measuring a smaller result is faster than looking it up, in bytes. */
const MIN_REMEMBERED = 256

/**
 * The size of a result, in bytes of JSON.
 * @param most above it, the answer is any larger number
 */
export function resultBytes(result: unknown, most = Infinity): number {
  const known = typeof result === 'object' && result !== null ? measured.get(result) : undefined
  if (known !== undefined) return known
  const bytes = jsonBytes(result, most)
  const isRemembered = bytes <= most && bytes >= MIN_REMEMBERED
  if (isRemembered && typeof result === 'object' && result !== null) measured.set(result, bytes)
  return bytes
}
