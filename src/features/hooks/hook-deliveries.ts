/** Remembers in the store which messages went through hooks, so that the next process looks for them in the transcript of the client. */
import { z } from 'zod'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { lazily } from '../../protocol/lazily.js'
import type { StoredDelivery } from '../../store/store.js'

const FEATURE = 'hooks'

/** Where the client keeps the conversation that was given a message. */
export interface HookPlace {
  readonly client: string
  readonly transcriptPath: string
}

const rowSchema = lazily(() => z.object({ id: z.string(), client: z.string(), transcriptPath: z.string() }))

export class HookDeliveries implements Feature {
  readonly states: FeatureStates = { feature: FEATURE, restore: (rows) => this.#restore(rows) }
  /** Whether the conversation has the message with this id. Set by the server, which knows the clients. */
  hasMessage: (place: HookPlace, deliveryId: string) => boolean = () => false
  readonly #registry: TaskRegistry
  /** The places of messages of earlier processes. */
  readonly #places = new Map<string, HookPlace>()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Stores where a message goes, in one write with its lease. */
  sent(deliveryId: string, { client, transcriptPath }: HookPlace): void {
    this.#registry.persistence?.keepState(FEATURE, deliveryId, { client, transcriptPath })
  }

  /** Removes what is stored about a message whose outcome is known. */
  settled(deliveryId: string): void {
    this.#registry.persistence?.dropState(FEATURE, deliveryId)
  }

  /** Whether the message of an earlier process has arrived. If its transcript does not have it, nobody knows. */
  wasDelivered({ id }: StoredDelivery): boolean | undefined {
    const place = this.#places.get(id)
    if (place === undefined) return undefined
    this.#places.delete(id)
    this.settled(id)
    return this.hasMessage(place, id) ? true : undefined
  }

  #restore(rows: Parameters<FeatureStates['restore']>[0]): void {
    takeRows(this.#registry, { feature: FEATURE, schema: rowSchema(), rows }, ({ client, transcriptPath }, id) => {
      this.#places.set(id, { client, transcriptPath })
    })
  }
}

export const hookDeliveries = (registry: TaskRegistry): HookDeliveries => new HookDeliveries(registry)
