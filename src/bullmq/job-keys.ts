/** Where a job and what belongs to it are in Redis: three keys of this package for each job, and its channels. */

/** A queue of BullMQ. */
export interface QueueName {
  readonly prefix: string
  readonly queue: string
}

/** The names that belong to one job. */
export interface JobKeys {
  readonly id: string
  /** What BullMQ's keys of the queue begin with: only scripts know more of them (`bullmq-layout.ts`). */
  readonly queue: string
  /** What its run and its host say to each other that is not a sequence: cancellation, questions, answers, sums. */
  readonly agent: string
  /** The stream of what its run writes and reports. */
  readonly up: string
  /** The stream of the messages to its run. */
  readonly down: string
}

/** How long what belongs to a job is kept, in seconds: so long its id is harmless, too. */
export const RETENTION_SECONDS = 86_400

/** What BullMQ's keys of a queue begin with. */
export const queueKey = ({ prefix, queue }: QueueName): string => `${prefix}:${queue}`

/** The keys of a job. */
export function jobKeys(name: QueueName, id: string): JobKeys {
  const queue = queueKey(name)
  const job = `${queue}:${id}`
  return { id, queue, agent: `${job}:agent`, up: `${job}:up`, down: `${job}:down` }
}

/** Where the workers of a queue hear which jobs have something new for them. */
export const workersChannel = (name: QueueName): string => `${queueKey(name)}:agent-workers`

/** Where one host hears which jobs have something new for it. */
export const hostChannel = (name: QueueName, host: string): string => `${queueKey(name)}:agent-host:${host}`
