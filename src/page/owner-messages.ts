/** The latest messages that carried results to an owner, limited in number and bytes. */
import type { DeliveryTransition } from '../../machines/transitions.js'
import { heldBytes } from './texts.js'
import type { DeliveryMessage } from './wire.js'

/** The maximum number of messages, and of tasks listed for each message. */
const MAX_MESSAGES = 50
const MAX_TASKS = 50

/** The maximum size of all messages of an owner, and of one message, in bytes. */
const MAX_BYTES = 16 * 1024
const MAX_MESSAGE_BYTES = 4 * 1024

/** The approximate sizes of a message and of an entry in its list of tasks without their texts, in bytes. */
const MESSAGE_BYTES = 200
const PLACE_BYTES = 8

interface Message {
  readonly deliveryId: string
  readonly at: number
  endedAt?: number
  outcome: DeliveryMessage['outcome']
  readonly tasks: string[]
  bytes: number
}

export class OwnerMessages {
  /** In the order of their creation. */
  readonly #messages = new Map<string, Message>()
  #bytes = 0

  get size(): number {
    return this.#messages.size
  }

  /** Records that a message carries the result of a task, or that the message was accepted or released. */
  note(key: string, deliveryId: string, { from, to, at }: DeliveryTransition): void {
    const message = this.#messages.get(deliveryId) ?? this.#add(deliveryId, at)
    const bytes = PLACE_BYTES + heldBytes(key)
    const hasRoom = message.tasks.length < MAX_TASKS && message.bytes + bytes <= MAX_MESSAGE_BYTES
    if (hasRoom && !message.tasks.includes(key)) {
      message.tasks.push(key)
      message.bytes += bytes
      this.#bytes += bytes
    }
    for (const [oldest, { bytes }] of this.#messages) {
      if (this.#messages.size <= MAX_MESSAGES && this.#bytes <= MAX_BYTES) break
      this.#messages.delete(oldest)
      this.#bytes -= bytes
    }
    if (to === 'leased') return
    message.outcome = to === 'delivered' ? 'accepted' : 'released'
    if (from !== 'delivered') message.endedAt = at
  }

  /** Returns the messages, newest first. */
  shown(): DeliveryMessage[] {
    return Array.from(this.#messages.values(), ({ bytes: _, tasks, ...message }) => ({
      ...message,
      tasks: [...tasks],
    })).reverse()
  }

  #add(deliveryId: string, at: number): Message {
    const bytes = MESSAGE_BYTES + heldBytes(deliveryId)
    const message: Message = { deliveryId, at, outcome: 'open', tasks: [], bytes }
    this.#messages.set(deliveryId, message)
    this.#bytes += bytes
    return message
  }
}
