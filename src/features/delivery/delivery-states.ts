/** The state of each owner's deliveries, for the page and other displays. */
import { Subject } from 'rxjs'
import type { DeliverySnapshot } from '../../../machines/delivery.js'
import type { Clock } from '../../system/clock.js'
import type { Feature } from '../../async-tasks/feature.js'

/** The state of the deliveries of one auto-trigger. */
export interface DeliveryState {
  /** The state of the delivery machine, with dots between nested states, such as `holding.polling`. */
  readonly path: string
  /** When the machine will leave the state by a timer, in ms since the epoch; undefined if it waits for an event. */
  readonly until: number | undefined
  /** How many deliveries have failed since the last success. */
  readonly failures: number
}

/** Where one auto-trigger records its state. */
export interface OpenState {
  set(snapshot: DeliverySnapshot): void
  close(): void
}

/** The last snapshot of a delivery machine, and when it entered its state. */
interface KnownState {
  readonly snapshot: DeliverySnapshot
  readonly at: number
}

/** The states of all auto-triggers that are subscribed or have a message in flight. */
export class DeliveryStates implements Feature {
  /** Emits the owner whose state has changed. Subscribers must not throw. */
  readonly changed$ = new Subject<string>()
  readonly #snapshots = new Map<string, Map<OpenState, KnownState>>()
  /** What is called when the registry is disposed, for each open entry. */
  readonly #closers = new Set<() => void>()
  #isDisposed = false

  /**
   * Creates the entry of an auto-trigger.
   * @param onDisposed called when the registry is disposed before the entry is closed
   */
  open(owner: string, clock: Clock, onDisposed: () => void): OpenState {
    const states = this.#snapshots.get(owner) ?? new Map<OpenState, KnownState>()
    this.#snapshots.set(owner, states)
    if (this.#isDisposed) onDisposed()
    else this.#closers.add(onDisposed)
    let last: string | undefined
    const state: OpenState = {
      set: (snapshot) => {
        const path = pathOf(snapshot.value)
        // Each poll enters the same state again. That is not a change.
        if (path === last) return
        last = path
        states.set(state, { snapshot, at: clock.now() })
        if (this.changed$.observed) this.changed$.next(owner)
      },
      close: () => {
        this.#closers.delete(onDisposed)
        states.delete(state)
        if (states.size === 0 && this.#snapshots.get(owner) === states) this.#snapshots.delete(owner)
        if (this.changed$.observed) this.changed$.next(owner)
      },
    }
    return state
  }

  owners(): Iterable<string> {
    return this.#snapshots.keys()
  }

  /** Returns the states of an owner's auto-triggers. */
  of(owner: string): readonly DeliveryState[] {
    return Array.from(this.#snapshots.get(owner)?.values() ?? [], ({ snapshot, at }) => stateAt(snapshot, at))
  }

  disposed(): void {
    this.#isDisposed = true
    // A callback of the host may add further entries meanwhile.
    for (const close of this.#closers) close()
    this.changed$.complete()
  }
}

export const deliveryStates = (): DeliveryStates => new DeliveryStates()

function stateAt({ value, context: { timing, failures } }: DeliverySnapshot, at: number): DeliveryState {
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

/** Formats the state of the machine, such as `holding.polling`. */
function pathOf(value: DeliverySnapshot['value']): string {
  if (typeof value === 'string') return value
  return Object.entries(value)
    .map(([name, inner]) => `${name}.${pathOf(inner as DeliverySnapshot['value'])}`)
    .join()
}
