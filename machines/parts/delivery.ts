/** The delivery of results and questions: which message carries them, and which messages were accepted (promises A5, A6). */
import { runOfOwner } from '../run-owner.js'
import type { TaskEntry } from '../task-entry.js'
import type { EventOf, Handlers, RegistryCore, RegistryPart } from './part.js'

type DeliveryEvent =
  | 'claims.drop'
  | 'delivery.repeat'
  | 'lease.acknowledge'
  | 'lease.release'
  | 'lease.restore'
  | 'lease.take'
  | 'task.delivered'
  | 'text.cut'
  | 'text.read'

export class DeliveryPart implements RegistryPart {
  readonly #core: RegistryCore

  constructor(core: RegistryCore) {
    this.#core = core
  }

  readonly on: Handlers<DeliveryEvent> = {
    'lease.take': ({ request }) => this.#core.ledger.take(request),
    'lease.restore': ({ request }) => {
      this.#core.ledger.take({ ...request, isClaim: true })
    },
    'lease.acknowledge': (event) => {
      this.#acknowledge(event)
      this.#core.prune()
    },
    'lease.release': ({ deliveryId, isUncertain }) => {
      this.#core.ledger.release(deliveryId, isUncertain)
      this.#core.prune()
    },
    'claims.drop': ({ deliveryId }) => {
      this.#core.ledger.dropClaims(deliveryId)
    },
    'delivery.repeat': ({ deliveryId }) => {
      const readable = [...this.#core.history.entries()].filter((entry) => this.#hasReader(entry))
      return this.#core.ledger.repeat(deliveryId, readable)
    },
    'task.delivered': ({ taskIds }) => {
      for (const id of taskIds) {
        const entry = this.#core.history.get(id)
        if (entry !== undefined) this.#core.ledger.markDelivered(entry)
      }
      this.#core.prune()
    },
    'text.cut': ({ taskIds }) => {
      for (const id of taskIds) this.#core.history.keepUnread(id)
      this.#core.prune()
    },
    'text.read': ({ taskId }) => {
      this.#core.history.markRead(taskId)
      this.#core.prune()
    },
  }

  #acknowledge({ deliveryId, carried, late, lateQuestions }: EventOf<'lease.acknowledge'>): void {
    const { ledger } = this.#core
    if (late === undefined) ledger.acknowledge(deliveryId, carried)
    else ledger.acceptLate(deliveryId, late, lateQuestions)
  }

  /** Whether the result of a task can still reach its owner. If the owner is the run of an ended task, it cannot. */
  #hasReader({ record: { owner } }: TaskEntry): boolean {
    const runId = runOfOwner(owner)
    return runId === undefined || this.#core.history.get(runId)?.ref !== undefined
  }
}
