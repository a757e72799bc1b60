/** Where a job and what belongs to it are in Redis: BullMQ's keys, and three of this package for each job. */

/** A queue of BullMQ. */
export interface QueueName {
  readonly prefix: string
  readonly queue: string
}

/** The keys of one job. */
export interface JobKeys {
  readonly id: string
  /** BullMQ's: its hash. */
  readonly job: string
  /** BullMQ's: the worker that has it, for as long as it says so. */
  readonly lock: string
  /** What its run and its host say to each other that is not a sequence: cancellation, questions, answers, sums. */
  readonly agent: string
  /** The stream of what its run writes and reports. */
  readonly up: string
  /** The stream of the messages to its run. */
  readonly down: string
  /** What else a change of its state touches, all BullMQ's. */
  readonly queueKeys: readonly string[]
}

/** How long what belongs to a job is kept, in seconds: so long its id is harmless, too. */
export const RETENTION_SECONDS = 86_400

/** The lists and sets of a queue that a job may be in, in the order in which `FAIL` of the scripts expects them. */
const QUEUE_KEYS = ['active', 'wait', 'paused', 'prioritized', 'delayed', 'stalled', 'failed', 'events'] as const

/** The keys of a job. */
export function jobKeys({ prefix, queue }: QueueName, id: string): JobKeys {
  const base = `${prefix}:${queue}:`
  const job = `${base}${id}`
  return {
    ...{ id, job, lock: `${job}:lock`, agent: `${job}:agent`, up: `${job}:up`, down: `${job}:down` },
    queueKeys: QUEUE_KEYS.map((name) => base + name),
  }
}

/** Where the workers of a queue hear which jobs have something new for them. */
export const workersChannel = ({ prefix, queue }: QueueName): string => `${prefix}:${queue}:agent-workers`

/** Where one host hears which jobs have something new for it. */
export const hostChannel = ({ prefix, queue }: QueueName, host: string): string =>
  `${prefix}:${queue}:agent-host:${host}`
