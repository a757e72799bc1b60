/**
 * The usage (tokens, cost and so on) of the tasks of each owner, and of all tasks. What the tasks of a run use counts for the owner of the run. With a
 * store, the sums are rows of it, in one write with the records that contain the same usage, so that a budget of the host survives a restart.
 */
import { z } from 'zod'
import { payerOf } from '../../../machines/run-owner.js'
import type { SpentTotals } from '../../../machines/records.js'
import { addSpent, type Usage } from '../../../machines/usage.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import { OwnerTable } from '../../async-tasks/owner-table.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { lazily } from '../../protocol/lazily.js'
import type { StoredJson } from '../../store/store.js'

const FEATURE = 'spent'
const ALL = 'all'
const PREFIX = 'owner:'

const amount = () => z.number().min(0).optional()
const rowSchema = lazily(() => z.object({ tokens: amount(), cost: amount(), steps: amount(), seconds: amount() }))

const NOTHING: SpentTotals = Object.freeze({})

export class SpentByOwner implements Feature {
  readonly states: FeatureStates = {
    feature: FEATURE,
    prepare: (rows) => this.#restore(rows),
    restore: () => (this.#isRestoring = false),
  }
  readonly #registry: TaskRegistry
  /** If it is full, the owner that has used nothing for the longest time is dropped: its usage then counts only in `#all`. */
  readonly #owners = new OwnerTable<SpentTotals>()
  #all = NOTHING
  /** Whether the restored rows contain the usage of the tasks that are being restored. */
  #isRestoring = false

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** @param isEarlier whether an earlier process has used it */
  spent(of: string, amount: Usage, isEarlier = false): void {
    if (isEarlier && this.#isRestoring) return
    const { history, persistence } = this.#registry
    const owner = payerOf(of, (id) => history.get(id)?.record.owner)
    const sum = addSpent(this.#owners.get(owner), amount)
    this.#all = addSpent(this.#all, amount)
    for (const dropped of this.#owners.set(owner, sum)) persistence?.dropState(FEATURE, PREFIX + dropped)
    persistence?.keepState(FEATURE, PREFIX + owner, { ...sum })
    persistence?.keepState(FEATURE, ALL, { ...this.#all })
  }

  of(owner: string | undefined): SpentTotals {
    return owner === undefined ? this.#all : (this.#owners.get(owner) ?? NOTHING)
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    // Rows that were written first come first.
    takeRows(this.#registry, { feature: FEATURE, schema: rowSchema(), rows }, (row, id) => {
      const sum = Object.freeze(omitUndefined(row))
      if (id !== ALL) this.#owners.set(id.slice(PREFIX.length), sum)
      else {
        this.#all = sum
        this.#isRestoring = true
      }
    })
  }
}

export const spentByOwner = (registry: TaskRegistry): SpentByOwner => new SpentByOwner(registry)
