/**
 * Pauses (promise F19): new tasks of an owner, or of all owners, are queued but do not start.
 *
 * The registry keeps the places of these tasks in the queue (`machines/parts/pauses.ts`, `registry.ts`). This feature begins, ends and stores pauses.
 * After a restart it reminds owners that a pause continues.
 */
import { z } from 'zod'
import { runOfOwner } from '../../../machines/run-owner.js'
import type { TaskPause } from '../../../machines/registry-events.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { DisposedError, InvalidInputError, PausedError } from '../../errors.js'
import { pausedOwnerSchema, pauseOptionsSchema, type PauseOptions } from '../../protocol/async-tasks.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import type { StoredJson } from '../../store/store.js'
import { isoTime } from '../../data/duration.js'
import type { Feature, FeatureStates, OwnerHold } from '../../async-tasks/feature.js'
import { addNote } from '../notes/notes.js'
import { pauseLines } from './pause-texts.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import { MAX_OWNERS } from '../../async-tasks/owner-table.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

const FEATURE = 'pauses'
const SOURCE = 'pause'

const HOLD = {
  kind: 'pause',
  text: 'paused',
  sentence: 'Background tasks are paused: it waits until a person resumes them',
  until: 'until background tasks are resumed',
} as const

const storedPauseSchema = lazily(() =>
  pauseOptionsSchema()
    .extend({ id: z.string(), owner: pausedOwnerSchema(), deliveries: z.enum(['hold', 'send']), since: z.number() })
    .refine(({ id, owner }) => id === idOf(owner), 'the owner of this row'),
)

export class Pausing implements Feature {
  readonly states: FeatureStates = {
    feature: FEATURE,
    prepare: (states) => this.#restore(states),
    restore: () => this.#remind(),
  }
  readonly #registry: TaskRegistry

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /**
   * Begins the pause of an owner or of all owners, or changes its options.
   * @throws INVALID_INPUT, DISPOSED
   */
  pause(given: string | undefined, options: PauseOptions): TaskPause {
    const { pauses, clock, isDisposed } = this.#registry
    const owner = parseInput(pausedOwnerSchema(), given, 'owner')
    const present = pauses.get(owner)
    const { deliveries = present?.deliveries ?? 'send', ...rest } = parseInput(pauseOptionsSchema(), options, 'options')
    if (owner !== undefined && runOfOwner(owner) !== undefined) {
      throw new InvalidInputError(
        'owner',
        owner,
        'an owner other than a run, because the tasks that a run launches are not paused',
      )
    }
    const isFull = pauses.size >= MAX_OWNERS.owners || pauses.bytes >= MAX_OWNERS.bytes
    if (owner !== undefined && present === undefined && isFull) {
      throw new InvalidInputError(
        'owner',
        owner,
        `an owner that is already paused, because ${pauses.size} owners are paused, and no more can be`,
      )
    }
    if (isDisposed) throw new DisposedError('The task manager was disposed, so no task starts.')
    if (present?.deliveries === deliveries) return present
    const { since, by } = present ?? { since: clock.now(), by: rest.by }
    const pause = Object.freeze({ ...omitUndefined({ owner, by }), deliveries, since })
    this.#registry.batch(() => {
      this.#registry.send({ type: 'pause.begin', pause })
      this.#registry.persistence?.keepState(FEATURE, idOf(owner), { ...pause })
    })
    return pause
  }

  /**
   * Ends the pause of an owner. Without an owner, ends the pause of all owners.
   * @returns false if there is no such pause
   * @throws INVALID_INPUT
   */
  resume(given: string | undefined): boolean {
    const owner = parseInput(pausedOwnerSchema(), given, 'owner')
    const registry = this.#registry
    const { pauses, isDisposed, ledger } = registry
    if (isDisposed || pauses.get(owner) === undefined) return false
    registry.batch(() => {
      registry.send({ type: 'pause.end', owner })
      registry.persistence?.dropState(FEATURE, idOf(owner))
      // Marks reminders of this pause as delivered, so that they are not sent. They are no longer true.
      const stale = ledger.owed(owner).filter((entry) => isPauseNote(entry) && !pauses.concern(entry.record.owner))
      if (stale.length > 0) registry.send({ type: 'task.delivered', taskIds: stale.map(({ record }) => record.id) })
    })
    return true
  }

  ownerHold(owner: string): OwnerHold | undefined {
    const found = this.#registry.pauses.of(owner)
    if (found.length === 0) return undefined
    return { ...HOLD, since: Math.min(...found.map(({ since }) => since)), refusal: () => new PausedError(owner) }
  }

  listLines(owner: string | undefined): string[] {
    const { pauses } = this.#registry
    return pauseLines(owner === undefined ? pauses.list() : pauses.of(owner))
  }

  /** A pause may hold back results, but never notes. */
  mayDeliver({ record }: TaskEntry): boolean {
    return record.isNote === true || !this.#registry.pauses.holdResults(record.owner)
  }

  /** Ends the pause of an owner that the host has released. */
  released(owner: string, heir: string | undefined): void {
    const { pauses, persistence } = this.#registry
    if (owner === heir || pauses.get(owner) === undefined) return
    pauses.delete(owner)
    persistence?.dropState(FEATURE, idOf(owner))
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    const schema = storedPauseSchema()
    takeRows(this.#registry, { feature: FEATURE, schema, rows }, ({ id: _, owner, by, ...fields }) => {
      const pause = Object.freeze({ ...omitUndefined({ owner, by }), ...fields })
      this.#registry.send({ type: 'pause.begin', pause })
    })
  }

  /** After a restart, reminds the owners of paused tasks that these tasks still wait. */
  #remind(): void {
    const { pauses, ledger } = this.#registry
    const owners = new Set(ledger.queued().map(({ record }) => record.owner))
    for (const { owner } of pauses.list()) if (owner !== undefined) owners.add(owner)
    for (const owner of owners) {
      const [pause] = pauses.of(owner)
      if (pause === undefined || ledger.owed(owner).some(isPauseNote)) continue
      const count = ledger.countOf('queued', owner)
      const text = `Background tasks have been paused since ${isoTime(pause.since)}, and still are. ${count} task(s) wait until a person resumes them.`
      addNote(this.#registry, { owner, source: SOURCE, title: 'Background tasks are paused', text })
    }
  }
}

export const pausing = (registry: TaskRegistry): Pausing => new Pausing(registry)

const idOf = (owner: string | undefined): string => (owner === undefined ? 'all' : `owner:${owner}`)

const isPauseNote = ({ record }: TaskEntry): boolean => record.isNote === true && record.subagentName === SOURCE
