/** The Redis keys of a job: three keys of this package, and its channels. */

/** The prefix and name of a BullMQ queue. */
export interface QueueName {
  readonly prefix: string
  readonly queue: string
}

/** The names that belong to one job. */
export interface JobKeys {
  readonly id: string
  /** The prefix of BullMQ's keys of the queue. Only scripts use more of it (`bullmq-layout.ts`). */
  readonly queue: string
  /** State that the run and its host exchange: cancellation, questions, answers, sums. */
  readonly agent: string
  /** The stream of the run's output and progress. */
  readonly up: string
  /** The stream of the messages to its run. */
  readonly down: string
}

/** How long the keys of a job are kept, in seconds. Adding its id again is a no-op for as long. */
export const RETENTION_SECONDS = 86_400

/** The prefix of BullMQ's keys of a queue. */
export const queueKey = ({ prefix, queue }: QueueName): string => `${prefix}:${queue}`

/** The keys of a job. */
export function jobKeys(name: QueueName, id: string): JobKeys {
  const queue = queueKey(name)
  const job = `${queue}:${id}`
  return { id, queue, agent: `${job}:agent`, up: `${job}:up`, down: `${job}:down` }
}

/** The channel that hints to the workers of a queue which jobs have news. */
export const workersChannel = (name: QueueName): string => `${queueKey(name)}:agent-workers`

/** The channel that hints to one host which jobs have news. */
export const hostChannel = (name: QueueName, host: string): string => `${queueKey(name)}:agent-host:${host}`
