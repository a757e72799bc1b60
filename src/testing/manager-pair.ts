/** A task manager and its model, and fast-check commands that change both and compare them. */
import assert from 'node:assert/strict'
import type fc from 'fast-check'
import type { AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import { AgentTasksError } from '../errors.js'
import type { TaskLease } from '../features/delivery/leases.js'
import { createManualClock, type ManualClock } from './manual-clock.js'
import * as ledger from './task-model.js'
import type { Ledger, ModelLease, ModelTask } from './task-model.js'

/** The model: a ledger, and the leases and reservations that the commands took. */
export interface ManagerModel {
  /** The expected state of the manager. */
  readonly ledger: Ledger
  /** The leases in the order in which they were requested; undefined for a refused one. */
  readonly leases: (ModelLease | undefined)[]
  /** The reservations in the order in which they were requested; null for a refused one. */
  readonly reservations: (string | null)[]
}

/** The manager under test. */
export interface ManagerSystem {
  /** The manager. */
  readonly manager: AsyncTaskManager
  /** The clock of the manager. */
  readonly clock: ManualClock
  /** The leases in the order in which they were requested; undefined for a refused one. */
  readonly leases: (TaskLease | undefined)[]
  /** The reservations in the order in which they were requested; null for a refused one. */
  readonly reservations: (string | null)[]
}

/** A manager and its model, as `fc.modelRun` takes them. */
export interface ManagerPair {
  /** The expected state of the manager, and the leases and reservations that the commands took. */
  readonly model: ManagerModel
  /** The manager, with its clock, and its leases and reservations. */
  readonly real: ManagerSystem
}

/** A command for `fc.commands`. `managerCommands` returns those of the kit; `managerCommand` creates one of your own. */
export type ManagerCommand = fc.Command<ManagerModel, ManagerSystem>

/** Options of `createManagerPair`. */
export interface ManagerPairOptions {
  /** How many tasks may run at once; -1 for no limit. Default 2. */
  readonly maxAsyncTasks?: number
  /** Whether the result of a cancelled task is owed. Default false. */
  readonly notifyCancelled?: boolean
  /** Makes the manager, for a subclass or a wrapper. Default: `new AsyncTaskManager(options)`. */
  readonly createManager?: (options: AsyncTaskManagerOptions) => AsyncTaskManager
}

/**
 * Creates a manager and its model, for `fc.modelRun`.
 * @param options the options of the manager
 * @returns the manager and its model
 * @example
 * fc.modelRun(() => createManagerPair({ maxAsyncTasks: 2 }), commands)
 */
export function createManagerPair(options: ManagerPairOptions = {}): ManagerPair {
  const {
    maxAsyncTasks = 2,
    notifyCancelled = false,
    createManager = (given: AsyncTaskManagerOptions) => new AsyncTaskManager(given),
  } = options
  const clock = createManualClock(1000)
  const manager = createManager({ maxAsyncTasks, notifyCancelled, clock })
  return {
    model: { ledger: ledger.emptyLedger(maxAsyncTasks, notifyCancelled, clock.now()), leases: [], reservations: [] },
    real: { manager, clock, leases: [], reservations: [] },
  }
}

/**
 * Creates a command that changes a manager and its model in the same way, and then compares both.
 * @param name the name of the command in a counterexample
 * @param act how to change the model, and how to change the manager. Both functions must return the same value
 * @returns the command, for `fc.commands`
 * @example
 * const failAll = managerCommand('fail all', {
 *   model: ({ ledger }) => …,
 *   real: ({ manager }) => manager.getRunningTasks().map(({ id }) => manager.failTask(id, 'over')),
 * })
 */
export function managerCommand(
  name: string,
  act: { readonly model: (model: ManagerModel) => unknown; readonly real: (system: ManagerSystem) => unknown },
): ManagerCommand {
  return {
    check: () => true,
    run: (model, real) => {
      const expected = outcomeOf(() => act.model(model))
      const actual = outcomeOf(() => act.real(real))
      emptyOutbox(model.ledger)
      assert.deepStrictEqual(actual, expected, `${name}: the manager returned or threw something else than its model`)
      compareManager(model, real, name)
    },
    toString: () => name,
  }
}

/**
 * Compares everything observable of a manager with its model, for a command that is not made by `managerCommand`.
 * @param model the model
 * @param real the manager
 * @param after the name of the command, for the error message
 * @throws AssertionError at the first difference
 * @example
 * run: (model, real) => {
 *   doSomething(model, real)
 *   compareManager(model, real, 'something')
 * }
 */
export function compareManager({ ledger: model }: ManagerModel, { manager }: ManagerSystem, after: string): void {
  const shown = { records: manager.getAllTasks().map(show), room: manager.canLaunchAsync().allowed }
  const expected = { records: model.tasks.map(({ record }) => show(record)), room: ledger.hasRoom(model) }
  assert.deepStrictEqual(shown, expected, `after ${after}: the records or free slots differ`)
  for (const owner of [undefined, ...OWNERS]) {
    const lists = { running: manager.getRunningTasks(owner), owed: manager.getPendingNotifications(owner) }
    const wanted = { running: ledger.running(model, owner), owed: ledger.owed(model, owner) }
    assert.deepStrictEqual(
      lists.running.map(idOf),
      wanted.running.map(idOfTask),
      `after ${after}: the running tasks differ`,
    )
    assert.deepStrictEqual(lists.owed.map(idOf), wanted.owed.map(idOfTask), `after ${after}: the owed results differ`)
  }
}

/** The owners that the kit's commands use. */
export const OWNERS = ['main', 'sub'] as const

type Shown = Pick<ledger.ModelRecord, 'id' | 'owner' | 'status' | 'delivery' | 'launchedAt' | 'seq'> & {
  readonly completedAt?: number
  readonly notifiedAt?: number
}

const show = ({ id, owner, status, delivery, launchedAt, seq, completedAt, notifiedAt }: Shown) => ({
  id,
  owner,
  status,
  delivery,
  launchedAt,
  seq,
  completedAt,
  notifiedAt,
})

export const idOf = ({ id }: { readonly id: string }): string => id
export const idOfTask = ({ record }: ModelTask): string => record.id

function outcomeOf(act: () => unknown): unknown {
  try {
    return { returned: act() }
  } catch (error) {
    return { threw: error instanceof AgentTasksError ? error.code : (error as Error).name }
  }
}

/** Does to the model what the manager does at the end of each call: drops the emitted events, and prunes the history. */
function emptyOutbox(model: Ledger): void {
  do {
    for (const item of model.outbox.splice(0)) {
      if (!('transition' in item) || item.transition.kind !== 'status' || item.transition.to === 'running') continue
      item.task.isHandled = true
      ledger.prune(model)
    }
    ledger.prune(model)
  } while (model.outbox.length > 0)
}
