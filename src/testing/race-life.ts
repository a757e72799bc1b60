/**
 * One life of the simulated process in a race: from a start to the next crash, or to the end of the run.
 *
 * The code of a life may go on after the life has ended, but it has no effect any more. Its clock and promises are closed, and its messages are not
 * sent. The next life has copies of its store and disk.
 */
import { observeClock } from '../isolation/observed-clock.js'
import { InvalidInputError } from '../errors.js'
import type { MemoryStore } from '../store/memory-store.js'
import type { StoreChange } from '../store/store.js'
import { createRaceClock, type MovableRaceClock } from './race-clock.js'
import type { RaceNames } from './race-names.js'
import type { Race } from './race-options.js'
import { RacePromises } from './race-promises.js'

/** The name of a crash between two turns. */
export const CRASH = 'crash'

/** The data that survives the end of a life. */
export interface Remains<Disk> {
  readonly store: MemoryStore
  readonly disk: Disk
}

export interface LifeHost {
  readonly names: RaceNames
  /** Returns the name that took the last turn; undefined in the first setup. */
  readonly lastActor: () => string | undefined
  readonly hasDeadlines: boolean
  readonly report: (error: unknown, from: { readonly source: string }) => void
  /** Adds a line to the current event of the timeline. */
  readonly note: (text: string) => void
  /** Decides whether the process dies at one of these points. Returns the name of the point; undefined if the process lives on. */
  readonly chooseCrash: (points: readonly string[], site: string) => string | undefined
  /** Ends the life of the process at a point. */
  readonly crash: (point: string) => void
}

export class RaceLife<Disk> {
  readonly number: number
  readonly clock: MovableRaceClock
  readonly promises: RacePromises
  /** The object that `setup` and steps receive in this life. */
  readonly race: Race<Disk>
  readonly #host: LifeHost
  readonly #remains: Remains<Disk>
  #isOver = false

  /** @param start the first time of its clock, in ms since the epoch */
  constructor(host: LifeHost, number: number, start: number, remains: Remains<Disk>) {
    this.number = number
    this.#host = host
    this.#remains = remains
    const { hasDeadlines, lastActor } = host
    this.clock = createRaceClock({ start, hasDeadlines, lastActor })
    const onError: Race['onError'] = (error, from) => {
      if (!this.#isOver) host.report(error, from)
    }
    observeClock(this.clock, onError)
    this.promises = new RacePromises(host.names)
    const { store, disk } = remains
    this.race = {
      clock: this.clock,
      life: number,
      disk,
      store: {
        ...store,
        write: (changes, onDelay) =>
          this.#message(
            'write',
            () => store.write(changes, onDelay),
            () => describeChanges(changes),
          ),
      },
      schedule: (task, label) => this.promises.schedule(task, label),
      scheduleFunction: (act, label) => this.promises.scheduleFunction(act, label),
      pause: (label) => this.promises.pause(label),
      message: (label, act) => this.#message(label, act),
      note: (text) => this.#note(text),
      onError,
    }
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Ends the life.
   * @returns copies of its store and disk, for the next life
   * @throws INVALID_INPUT if the disk cannot be copied
   */
  end(): Remains<Disk> {
    this.close()
    this.clock.clear()
    return { store: this.#remains.store.copy(), disk: copyDisk(this.#remains.disk) }
  }

  /** Takes all effect from the code of this life. */
  close(): void {
    this.#isOver = true
    this.clock.close()
    this.promises.close()
  }

  /** Performs an action that survives the process, unless the process dies before it. */
  #cross(label: string, act: () => void, describe?: () => string): void {
    if (this.#isOver) return
    const name = this.#host.names.next(label)
    const [before, after] = [`${CRASH} before ${name}`, `${CRASH} after ${name}`]
    const point = this.#host.chooseCrash([before, after], name)
    if (point === before) {
      this.#host.crash(before)
      return
    }
    this.#note(describe === undefined ? name : `${name}: ${describe()}`)
    try {
      act()
    } finally {
      if (point === after) this.#host.crash(after)
    }
  }

  #message<T>(label: string, act: () => T | PromiseLike<T>, describe?: () => string): Promise<T> {
    return new Promise((resolve, reject) => {
      const cross = (): void => {
        const result = new Promise<T>((done) => done(act()))
        result.then(
          (value) => !this.#isOver && resolve(value),
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason is passed on unchanged
          (error: unknown) => !this.#isOver && reject(error),
        )
      }
      this.#cross(label, cross, describe)
    })
  }

  #note(text: string): void {
    if (!this.#isOver) this.#host.note(text)
  }
}

/** @throws INVALID_INPUT when `disk` cannot be copied */
export function copyDisk<Disk>(disk: Disk): Disk {
  try {
    return structuredClone(disk)
  } catch {
    throw new InvalidInputError('race.disk', disk, 'data that structuredClone can copy, without functions')
  }
}

/** The maximum number of changes that a timeline shows of one write. */
const MAX_SHOWN = 5

function describeChanges(changes: readonly StoreChange[]): string {
  const shown = changes.slice(0, MAX_SHOWN).map(describeChange)
  const more = changes.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

function describeChange(change: StoreChange): string {
  if ('remove' in change) return `${change.table} without ${change.remove}`
  const { table, put } = change
  const fields =
    table === 'tasks'
      ? [put.status, put.delivery]
      : table === 'deliveries'
        ? [put.state, ...put.taskIds]
        : table === 'commandTasks'
          ? [put.status]
          : []
  return `${table} with ${[put.id, ...fields].join(' ')}`
}
