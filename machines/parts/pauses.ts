/** Pauses: the tasks of a paused owner do not start (promise F19). Running tasks and the tasks that they launch continue. */
import { runOfOwner } from '../run-owner.js'
import type { AdmissionRefusal, TaskPause } from '../registry-events.js'
import type { TaskEntry } from '../task-entry.js'
import type { HoldReason } from '../task-queue.js'
import type { Handlers, Held, Registration, RegistryCore, RegistryPart } from './part.js'

/** The current pauses, of all tasks or of single owners. */
export class Pauses {
  readonly #pauses = new Map<string | undefined, TaskPause>()
  #bytes = 0

  get size(): number {
    return this.#pauses.size
  }

  /** The approximate size of all pauses, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  list(): readonly TaskPause[] {
    return [...this.#pauses.values()]
  }

  get(owner: string | undefined): TaskPause | undefined {
    return this.#pauses.get(owner)
  }

  set(pause: TaskPause): void {
    this.delete(pause.owner)
    this.#pauses.set(pause.owner, pause)
    this.#bytes += bytesOf(pause)
  }

  delete(owner: string | undefined): void {
    const pause = this.#pauses.get(owner)
    if (pause === undefined) return
    this.#pauses.delete(owner)
    this.#bytes -= bytesOf(pause)
  }

  /**
   * Returns the pauses that concern the tasks of an owner. Returns none for a run as owner: the run continues, and may wait for the tasks that it has
   * launched.
   */
  of(owner: string): readonly TaskPause[] {
    if (this.#pauses.size === 0 || runOfOwner(owner) !== undefined) return []
    return [this.#pauses.get(undefined), this.#pauses.get(owner)].filter((pause) => pause !== undefined)
  }

  /** Whether the tasks of an owner are paused. */
  concern(owner: string): boolean {
    return this.of(owner).length > 0
  }

  holdResults(owner: string): boolean {
    return this.of(owner).some(({ deliveries }) => deliveries === 'hold')
  }
}

const bytesOf = ({ owner = '', by = '' }: TaskPause): number => 200 + 2 * (owner.length + by.length)

/** Called when a task waits for a slot again after a pause. `waitedMs` is how long it had waited before the pause. */
export type OnWaiting = (entry: TaskEntry, waitedMs: number) => void

export class PausesPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #pauses: Pauses
  readonly #onWaiting: OnWaiting | undefined

  constructor(core: RegistryCore, pauses: Pauses, onWaiting: OnWaiting | undefined) {
    this.#core = core
    this.#pauses = pauses
    this.#onWaiting = onWaiting
  }

  readonly on: Handlers<'pause.begin' | 'pause.end'> = {
    'pause.begin': ({ pause }) => {
      this.#pauses.set(pause)
      this.#announce(pause.owner)
    },
    'pause.end': ({ owner }) => {
      this.#pauses.delete(owner)
      this.#announce(owner)
    },
  }

  refuse({ admission, isLaunched }: Registration): AdmissionRefusal | undefined {
    return isLaunched && admission.isForeground === true && this.#pauses.concern(admission.owner) ? 'paused' : undefined
  }

  hold({ owner, isNewForeground = false }: Held): HoldReason | undefined {
    return !isNewForeground && this.#pauses.concern(owner) ? 'pause' : undefined
  }

  ownerChanged(owner: string): void {
    this.#apply(owner)
  }

  #announce(owner: string | undefined): void {
    this.#apply(owner)
    this.#core.changes.hold(owner)
  }

  /** Holds or releases the queued tasks of an owner, or of all owners. The time of a pause does not count as waiting for a slot. */
  #apply(owner: string | undefined): void {
    const { ledger, queue } = this.#core
    for (const entry of ledger.queued(owner)) {
      if (this.#pauses.concern(entry.record.owner)) {
        queue.hold(entry, 'pause')
        continue
      }
      const waitedMs = queue.release(entry, 'pause')
      if (waitedMs !== undefined) this.#onWaiting?.(entry, waitedMs)
    }
  }
}
