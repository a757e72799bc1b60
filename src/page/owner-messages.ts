/** The latest messages that carried results to an owner, limited in number and bytes. */
import type { DeliveryTransition } from '../../machines/records.js'
import { heldBytes } from './texts.js'
import type { DeliveryMessage } from './wire.js'

/** The maximum of messages, and of tasks of each. */
const MAX_MESSAGES = 50
const MAX_TASKS = 50

/** The maximum of all messages, and of one, in bytes. */
const MAX_BYTES = 16 * 1024
const MAX_MESSAGE_BYTES = 4 * 1024

/** The approximate size of a message and of a list entry besides their texts, in bytes. */
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
  /** Newest last. */
  readonly #messages = new Map<string, Message>()
  #bytes = 0

  get size(): number {
    return this.#messages.size
  }

  /** Notes that a message has carried a task or has ended. */
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

  /** Newest first. */
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
