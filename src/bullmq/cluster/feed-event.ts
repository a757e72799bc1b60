/** Converts stored events of the cluster for the sockets and streams of a server. */
import type { TaskEvent } from '../../server/backend/event-log.js'
import type { KeptEvent } from './cluster-redis.js'

/** An event that is stored as JSON. It is parsed only if a subscriber needs its message. */
class FeedEvent implements TaskEvent {
  readonly seq: number
  readonly #json: string
  #message: TaskEvent['message'] | undefined
  #frame: Buffer | undefined

  constructor({ seq, json }: KeptEvent) {
    this.seq = seq
    this.#json = json
  }

  get message(): TaskEvent['message'] {
    return (this.#message ??= JSON.parse(this.#json) as TaskEvent['message'])
  }

  get isComplete(): boolean {
    return this.message.type === 'task_complete'
  }

  get frame(): Buffer {
    return (this.#frame ??= Buffer.from(this.#json))
  }

  releaseFrame(): void {
    this.#frame = undefined
  }
}

export const toTaskEvent = (kept: KeptEvent): TaskEvent => new FeedEvent(kept)
