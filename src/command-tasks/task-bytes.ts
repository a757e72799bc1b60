/**
 * What tasks hold, in bytes of JSON: their submissions and their results. A result is measured once, and is known by its identity after that,
 * because it is frozen and shared by the task and its messages.
 */
import { jsonBytes } from '../protocol/json-size.js'

/** The most bytes of JSON that tasks hold. */
export interface TaskByteLimits {
  /** The result of one command. */
  readonly maxResultBytes: number
  /** One task: its submission and its results. */
  readonly maxTaskBytes: number
  /** All tasks together. */
  readonly maxBytes: number
}

const MIB = 1024 * 1024
export const DEFAULT_BYTE_LIMITS: TaskByteLimits = {
  maxResultBytes: 16 * MIB,
  maxTaskBytes: 64 * MIB,
  maxBytes: 256 * MIB,
}

/** What all tasks of a manager hold together. */
export class ByteBudget {
  readonly limits: TaskByteLimits
  readonly #forgetOldest: () => boolean
  #held = 0

  /** @param forgetOldest forgets the task that ended first; returns false when there is none */
  constructor(limits: TaskByteLimits, forgetOldest: () => boolean) {
    this.limits = limits
    this.#forgetOldest = forgetOldest
  }

  /** Makes room by forgetting ended tasks. Returns false, and takes nothing, when the rest holds too much. */
  take(bytes: number): boolean {
    while (this.#held + bytes > this.limits.maxBytes) if (!this.#forgetOldest()) return false
    this.#held += bytes
    return true
  }

  /** Takes what an earlier process has accepted, also beyond the limit. */
  hold(bytes: number): void {
    this.#held += bytes
  }

  giveBack(bytes: number): void {
    this.#held -= bytes
  }
}

const measured = new WeakMap<object, number>()

/**
 * The bytes of a result as JSON.
 * @param most beyond it, the answer is some number greater than it
 */
export function resultBytes(result: unknown, most = Infinity): number {
  const known = typeof result === 'object' && result !== null ? measured.get(result) : undefined
  if (known !== undefined) return known
  const bytes = jsonBytes(result, most)
  if (bytes <= most && typeof result === 'object' && result !== null) measured.set(result, bytes)
  return bytes
}
