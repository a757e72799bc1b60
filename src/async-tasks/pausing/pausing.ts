/**
 * Pauses (F19): the tasks of an owner, or of all, do not start.
 *
 * The registry holds their places in the queue back (`machines/pauses.ts`, `task-registry.ts`). This feature begins, ends and stores pauses, and says after a
 * restart that one goes on.
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

/** The most owners that are paused at a time, besides everyone. */
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

  /** Begins the pause of an owner, or of all; or changes its options. @throws InvalidInputError, DisposedError */
  pause(given: string | undefined, options: PauseOptions): TaskPause {
    const { pauses, clock, isDisposed } = this.#registry
    const owner = parseInput(pausedOwnerSchema(), given, 'owner')
    const present = pauses.get(owner)
    const { deliveries = present?.deliveries ?? 'send', ...rest } = parseInput(pauseOptionsSchema(), options, 'options')
    if (owner !== undefined && runOfOwner(owner) !== undefined) {
      throw new InvalidInputError('owner', owner, 'an owner that is no run: what a running task launches is not paused')
    }
    if (owner !== undefined && present === undefined && pauses.list().length >= MAX_PAUSES) {
      throw new InvalidInputError(
        'owner',
        owner,
        `one of the ${MAX_PAUSES} owners that are paused: there may be no more`,
      )
    }
    if (isDisposed) throw new DisposedError('The task manager was disposed: nothing starts.')
    if (present?.deliveries === deliveries) return present
    const { since, by } = present ?? { since: clock.now(), by: rest.by }
    const pause = Object.freeze({ ...defined({ owner, by }), deliveries, since })
    this.#registry.batch(() => {
      this.#registry.send({ type: 'pause.begin', pause })
      this.#registry.persistence?.keepState(FEATURE, idOf(owner), { ...pause })
    })
    return pause
  }

  /** Ends the pause of an owner, or that of all. @throws InvalidInputError */
  resume(given: string | undefined): boolean {
    const owner = parseInput(pausedOwnerSchema(), given, 'owner')
    const registry = this.#registry
    const { pauses, isDisposed, ledger } = registry
    if (isDisposed || pauses.get(owner) === undefined) return false
    registry.batch(() => {
      registry.send({ type: 'pause.end', owner })
      registry.persistence?.dropState(FEATURE, idOf(owner))
      // What they say does not hold any longer.
      const stale = ledger.owed(owner).filter((entry) => isPauseNote(entry) && !pauses.concern(entry.record.owner))
      if (stale.length > 0) registry.send({ type: 'task.delivered', taskIds: stale.map(({ record }) => record.id) })
    })
    return true
  }

  /** What may be delivered to an owner, or all, in the order in which it ended: a pause may hold results, but no notes. */
  deliverable(owner?: string): TaskEntry[] {
    const { pauses, ledger } = this.#registry
    return ledger.owed(owner).filter(({ record }) => record.isNote === true || !pauses.holdResults(record.owner))
  }

  /** Whether a result may be delivered to an owner, or a question is owed. */
  isOwing(owner: string): boolean {
    const { pauses, ledger } = this.#registry
    if (!pauses.holdResults(owner)) return ledger.isOwing(owner)
    return ledger.questions.owed(owner).length > 0 || this.deliverable(owner).length > 0
  }

  /** Nothing is paused for an owner that has gone. */
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

  /** Says to the owners of paused tasks that these still wait, as the process has started again. */
  #remind(): void {
    const { pauses, ledger } = this.#registry
    const owners = new Set(ledger.queued().map(({ record }) => record.owner))
    for (const { owner } of pauses.list()) if (owner !== undefined) owners.add(owner)
    for (const owner of owners) {
      const [pause] = pauses.of(owner)
      if (pause === undefined || ledger.owed(owner).some(isPauseNote)) continue
      const count = ledger.countOf('queued', owner)
      const text = `Background tasks have been paused since ${isoTime(pause.since)}, and still are. ${count} task(s) wait, and nothing starts until a person resumes them.`
      addNote(this.#registry, { owner, source: SOURCE, title: 'Background tasks are paused', text })
    }
  }
}

export const pausing = (registry: TaskRegistry): Pausing => new Pausing(registry)

const idOf = (owner: string | undefined): string => (owner === undefined ? 'all' : `owner:${owner}`)

const isPauseNote = ({ record }: TaskEntry): boolean => record.isNote === true && record.subagentName === SOURCE
