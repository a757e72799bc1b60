/** The keys that this package adds to each BullMQ job in Redis, and the pub/sub channels of a queue. */

export interface QueueName {
  readonly prefix: string
  readonly queue: string
}

export interface JobKeys {
  readonly id: string
  /** The prefix of BullMQ's keys of the queue. Only Lua scripts use the keys under this prefix (`bullmq-layout.ts`). */
  readonly queue: string
  /** The hash through which the worker and the host exchange state: cancellation, questions, answers and spent amounts. */
  readonly agent: string
  /** The stream of output and progress, from the worker to the host. */
  readonly up: string
  /** The stream of messages, from the host to the worker. */
  readonly down: string
}

/** How long the keys of a job are kept, in seconds. During that time BullMQ ignores a second add of the same id. */
export const RETENTION_SECONDS = 86_400

export const queueKey = ({ prefix, queue }: QueueName): string => `${prefix}:${queue}`

export function jobKeys(name: QueueName, id: string): JobKeys {
  const queue = queueKey(name)
  const job = `${queue}:${id}`
  return { id, queue, agent: `${job}:agent`, up: `${job}:up`, down: `${job}:down` }
}

/** The pub/sub channel on which a host publishes the id of a job, so that its worker reads the host's messages at once. */
export const workersChannel = (name: QueueName): string => `${queueKey(name)}:agent-workers`

/** The pub/sub channel on which workers publish the id of a job, so that its host reads the updates of the run at once. */
export const hostChannel = (name: QueueName, host: string): string => `${queueKey(name)}:agent-host:${host}`
