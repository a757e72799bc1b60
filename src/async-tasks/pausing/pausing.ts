/**
 * Pauses (promise F19): the tasks of an owner, or of all owners, do not start.
 *
 * The registry holds their places in the queue (`machines/pauses.ts`, `task-registry.ts`). This feature begins, ends and stores pauses, and notifies
 * owners after a restart that a pause continues.
 */
import { z } from 'zod'
import { runOfOwner } from '../../../machines/families.js'
import type { TaskPause } from '../../../machines/pauses.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { defined } from '../../defined.js'
import { DisposedError, InvalidInputError } from '../../errors.js'
import { pausedOwnerSchema, pauseOptionsSchema, type PauseOptions } from '../../protocol/async-tasks.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import type { StoredJson } from '../../store/store.js'
import { isoTime } from '../../text/duration.js'
import type { Feature, FeatureStates } from '../feature.js'
import { addNote } from '../notes.js'
import { takeRows } from '../recovery/state-rows.js'
import type { TaskRegistry } from '../registry.js'

/** The maximum of paused owners, not counting a pause of all. */
const MAX_PAUSES = 1000

const FEATURE = 'pauses'
const SOURCE = 'pause'

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
   * Begins or changes the pause of an owner, or of all owners.
   * @throws InvalidInputError, DisposedError
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
    if (owner !== undefined && present === undefined && pauses.list().length >= MAX_PAUSES) {
      throw new InvalidInputError('owner', owner, `one of the ${MAX_PAUSES} paused owners, which is the maximum`)
    }
    if (isDisposed) throw new DisposedError('The task manager was disposed, so no task starts.')
    if (present?.deliveries === deliveries) return present
    const { since, by } = present ?? { since: clock.now(), by: rest.by }
    const pause = Object.freeze({ ...defined({ owner, by }), deliveries, since })
    this.#registry.batch(() => {
      this.#registry.send({ type: 'pause.begin', pause })
      this.#registry.persistence?.keepState(FEATURE, idOf(owner), { ...pause })
    })
    return pause
  }

  /**
   * Ends the pause of an owner, or the pause of all.
   * @throws InvalidInputError
   */
  resume(given: string | undefined): boolean {
    const owner = parseInput(pausedOwnerSchema(), given, 'owner')
    const registry = this.#registry
    const { pauses, isDisposed, ledger } = registry
    if (isDisposed || pauses.get(owner) === undefined) return false
    registry.batch(() => {
      registry.send({ type: 'pause.end', owner })
      registry.persistence?.dropState(FEATURE, idOf(owner))
      // Removes reminders about this pause.
      const stale = ledger.owed(owner).filter((entry) => isPauseNote(entry) && !pauses.concern(entry.record.owner))
      if (stale.length > 0) registry.send({ type: 'task.delivered', taskIds: stale.map(({ record }) => record.id) })
    })
    return true
  }

  /** What may be delivered to an owner (any owner), in the order in which it ended. A pause may hold results but not notes. */
  deliverable(owner?: string): TaskEntry[] {
    const { pauses, ledger } = this.#registry
    return ledger.owed(owner).filter(({ record }) => record.isNote === true || !pauses.holdResults(record.owner))
  }

  /** Whether a deliverable result or a question is owed to an owner. */
  isOwing(owner: string): boolean {
    const { pauses, ledger } = this.#registry
    if (!pauses.holdResults(owner)) return ledger.isOwing(owner)
    return ledger.questions.owed(owner).length > 0 || this.deliverable(owner).length > 0
  }

  /** Ends the pause of an owner that was released. */
  released(owner: string, heir: string | undefined): void {
    const { pauses, persistence } = this.#registry
    if (owner === heir || pauses.get(owner) === undefined) return
    pauses.delete(owner)
    persistence?.dropState(FEATURE, idOf(owner))
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    const schema = storedPauseSchema()
    takeRows(this.#registry, { feature: FEATURE, schema, rows }, ({ id: _, owner, by, ...fields }) => {
      const pause = Object.freeze({ ...defined({ owner, by }), ...fields })
      this.#registry.send({ type: 'pause.begin', pause })
    })
  }

  /** Notifies the owners of paused tasks after a restart that the tasks still wait. */
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
