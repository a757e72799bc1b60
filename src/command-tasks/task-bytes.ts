/**
 * What tasks hold, in bytes of JSON: their submissions and their results. A large result is measured once, and is known by its identity after that,
 * because it is frozen and shared by the task and its messages.
 */
import { jsonBytes } from '../json/json-size.js'

/** The most bytes of JSON that tasks hold. */
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

/** What one row of a store may have. */
const MAX_ROW_BYTES = 64 * MIB

/** The limits of a manager, with their defaults. */
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

/** What a task may still take. */
export interface TaskBudget {
  readonly limits: TaskByteLimits
  /** Makes room by forgetting ended tasks. Returns false, and takes nothing, when the rest holds too much. */
  take(bytes: number): boolean
}

/** For a task that another process has accepted. */
export const UNLIMITED: TaskBudget = {
  limits: { maxResultBytes: Infinity, maxSubmissionBytes: Infinity, maxTaskBytes: Infinity, maxBytes: Infinity },
  take: () => true,
}

const measured = new WeakMap<object, number>()

/** A smaller result is measured sooner than found, in bytes. */
const MIN_REMEMBERED = 256

/**
 * The bytes of a result as JSON.
 * @param most beyond it, the answer is some number greater than it
 */
export function resultBytes(result: unknown, most = Infinity): number {
  const known = typeof result === 'object' && result !== null ? measured.get(result) : undefined
  if (known !== undefined) return known
  const bytes = jsonBytes(result, most)
  const isRemembered = bytes <= most && bytes >= MIN_REMEMBERED
  if (isRemembered && typeof result === 'object' && result !== null) measured.set(result, bytes)
  return bytes
}
