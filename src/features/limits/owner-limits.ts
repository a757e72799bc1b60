/** The limits of each owner (promise H9): the option `ownerLimits`, and what it means for a pool of slots. */
import { payerOf } from '../../../machines/run-owner.js'
import type { OwnerLimits } from '../../../machines/owner-limits.js'
import type { QueueLimits } from '../../../machines/task-queue.js'
import { custom, integerFrom, type OptionTypes } from '../../protocol/option-checks.js'

/** Limits of the tasks of one owner: in a host with conversations, of one conversation. */
export interface OwnerLimitOptions {
  /**
   * How many tasks of one owner may run at once, and how many of its commands: an integer >= 1, a number below 1 for a share of `maxAsyncTasks` and of
   * `maxCommands`, or -1 for no limit. Default -1; with `respond` 0.5.
   */
  readonly maxRunning?: number
  /**
   * How many tasks of one owner may wait in a queue: an integer >= 0, a number below 1 for a share of `queue.max`, or -1 for no limit. Default -1; with
   * `respond` 0.25.
   */
  readonly maxQueued?: number
  /**
   * The maximum total size of the goals and parameters of one owner's waiting tasks, in bytes of JSON: an integer >= 0, a number below 1 for a share of
   * `queue.maxBytes`, or -1 for no limit. Default -1; with `respond` 0.25.
   */
  readonly maxQueuedBytes?: number
  /**
   * How many records of ended tasks of one owner are kept when their results are delivered. All owners together keep at most 10,000 of them, with at
   * most 64 MiB of text. Default: twice `maxAsyncTasks`, or 10 without that limit.
   */
  readonly maxKept?: number
}

const limitOrShare = (least: number) =>
  custom(
    `an integer >= ${least}, a number between 0 and 1 for a share, or -1 for no limit`,
    (value) =>
      typeof value === 'number' &&
      (value === -1 || (Number.isSafeInteger(value) && value >= least) || (value > 0 && value < 1)),
    { isNumber: true },
  )

export const ownerLimitTypes = {
  maxRunning: limitOrShare(1),
  maxQueued: limitOrShare(0),
  maxQueuedBytes: limitOrShare(0),
  maxKept: integerFrom(0),
} satisfies OptionTypes<OwnerLimitOptions>

/** The limits of a host with conversations: one busy conversation leaves room for others. */
export const CONVERSATION_LIMITS = { maxRunning: 0.5, maxQueued: 0.25, maxQueuedBytes: 0.25 } as const

/**
 * Returns the limits of each owner in a pool; undefined if it has none.
 * @param ownerOf returns the owner of a kept task
 */
export function ownerLimits(
  pool: 'task' | 'command' | 'child' | 'foreground',
  { maxRunning = -1, maxQueued = -1, maxQueuedBytes = -1 }: OwnerLimitOptions,
  queue: QueueLimits,
  ownerOf: (taskId: string) => string | undefined,
): OwnerLimits | undefined {
  // Tasks that runs have launched are limited by `maxChildrenPerTask`. A limit of their owner could keep a run from ever having its children.
  if (pool === 'child' || (maxRunning === -1 && maxQueued === -1 && maxQueuedBytes === -1)) return undefined
  return {
    running: (max) => (pool === 'foreground' ? -1 : partOf(maxRunning, max)),
    queued: orInfinity(partOf(maxQueued, queue.max)),
    queuedBytes: orInfinity(partOf(maxQueuedBytes, queue.maxBytes)),
    payerOf: (owner) => payerOf(owner, ownerOf),
  }
}

/** Returns the limit of one owner if `whole` is the limit of all. */
function partOf(limit: number, whole: number): number {
  if (limit <= 0 || limit >= 1) return limit
  return whole === -1 ? -1 : Math.max(1, Math.ceil(whole * limit))
}

const orInfinity = (limit: number): number => (limit === -1 ? Infinity : limit)
