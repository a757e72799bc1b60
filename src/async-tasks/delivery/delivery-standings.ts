/** How the deliveries of each owner stand, by the states of their machines, for those who show it. */
import { Subject } from 'rxjs'
import type { DeliverySnapshot } from '../../../machines/delivery.js'
import type { Clock } from '../../clock.js'
import type { Feature } from '../feature.js'

/** How the deliveries of one trigger stand. */
export interface DeliveryStanding {
  /** The state of the machine, its levels joined by dots. */
  readonly path: string
  /** When it leaves the state by itself, in ms since the epoch; undefined when it waits for something else. */
  readonly until: number | undefined
  /** Deliveries that failed in a row. */
  readonly failures: number
}

/** The place of one trigger. */
export interface OpenStanding {
  set(snapshot: DeliverySnapshot): void
  close(): void
}

/** The last snapshot of a trigger's machine, and since when it is in its state. */
interface Standing {
  readonly snapshot: DeliverySnapshot
  readonly at: number
}

/** The standings of the triggers that are subscribed, or have a message in flight. */
export class DeliveryStandings implements Feature {
  /** The owners whose standing has changed. Its subscribers must not throw. */
  readonly changed$ = new Subject<string>()
  readonly #snapshots = new Map<string, Map<OpenStanding, Standing>>()

  /** Makes a place for a trigger. */
  open(owner: string, clock: Clock): OpenStanding {
    const standings = this.#snapshots.get(owner) ?? new Map<OpenStanding, Standing>()
    this.#snapshots.set(owner, standings)
    let last: string | undefined
    const standing: OpenStanding = {
      set: (snapshot) => {
        const path = pathOf(snapshot.value)
        // It may be asked again and again whether the agent is busy.
        if (path === last) return
        last = path
        standings.set(standing, { snapshot, at: clock.now() })
        if (this.changed$.observed) this.changed$.next(owner)
      },
      close: () => {
        standings.delete(standing)
        if (standings.size === 0 && this.#snapshots.get(owner) === standings) this.#snapshots.delete(owner)
        if (this.changed$.observed) this.changed$.next(owner)
      },
    }
    return standing
  }

  /** The owners to whom something delivers. */
  owners(): Iterable<string> {
    return this.#snapshots.keys()
  }

  /** How each trigger of an owner stands. */
  of(owner: string): readonly DeliveryStanding[] {
    return Array.from(this.#snapshots.get(owner)?.values() ?? [], ({ snapshot, at }) => standingOf(snapshot, at))
  }

  disposed(): void {
    this.changed$.complete()
  }
}

/** How the deliveries of a registry stand. */
export const deliveryStandings = (): DeliveryStandings => new DeliveryStandings()

function standingOf({ value, context: { timing, failures } }: DeliverySnapshot, at: number): DeliveryStanding {
  const path = pathOf(value)
  const backOffMs = Math.min(timing.retryMaxMs, timing.retryInitialMs * 2 ** Math.max(0, failures - 1))
  const until =
    path === 'backingOff'
      ? at + backOffMs
      : path.startsWith('delivering') && timing.timeoutMs !== undefined
        ? at + timing.timeoutMs
        : undefined
  return { path, until, failures }
}

/** The path of a state, such as `holding.polling`. */
function pathOf(value: DeliverySnapshot['value']): string {
  if (typeof value === 'string') return value
  return Object.entries(value)
    .map(([name, inner]) => `${name}.${pathOf(inner as DeliverySnapshot['value'])}`)
    .join()
}
