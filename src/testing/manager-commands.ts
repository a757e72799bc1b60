/**
 * fast-check commands for a task manager, each of which does the same to a manager and to its model and compares what can be
 * seen of both. Users add commands of their own, for what their host does with the manager.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager, type AsyncTaskManagerOptions } from '../async-tasks/manager.js'
import type { TaskLease } from '../async-tasks/leases.js'
import { createManualClock, type ManualClock } from './manual-clock.js'
import * as ledger from './task-model.js'
import type { Ledger, ModelLease, ModelTask } from './task-model.js'

/** What the model knows: the ledger of `emptyLedger`, and the leases that the commands took. */
export interface ManagerModel {
  /** What the manager must hold. */
  readonly ledger: Ledger
  /** The leases in the order in which they were taken; undefined for one that was refused. */
  readonly leases: (ModelLease | undefined)[]
  /** The reservations in the order in which they were made; null for one that was refused. */
  readonly reservations: (string | null)[]
}

/** What is held against the model. */
export interface ManagerSystem {
  /** The manager under test. */
  readonly manager: AsyncTaskManager
  /** Its time. */
  readonly clock: ManualClock
  /** The leases in the order in which they were taken; undefined for one that was refused. */
  readonly leases: (TaskLease | undefined)[]
  /** The reservations in the order in which they were made; null for one that was refused. */
  readonly reservations: (string | null)[]
}

/** A command for `fc.commands`: of `managerCommands`, or one's own. */
export type ManagerCommand = fc.Command<ManagerModel, ManagerSystem>

/** How model and manager are made. */
export interface ManagerCommandOptions {
  /** How many tasks may run at once; -1 for no limit. Default 2. */
  readonly maxAsyncTasks?: number
  /** A cancelled task owes its owner a message too. Default false. */
  readonly notifyCancelled?: boolean
  /** Builds the manager from these options; a subclass or a wrapper goes here. Default: `new AsyncTaskManager`. */
  readonly createManager?: (options: AsyncTaskManagerOptions) => AsyncTaskManager
}

/**
 * A fresh model and a fresh manager, for `fc.modelRun`.
 * @example
 * fc.modelRun(() => createManagerPair({ maxAsyncTasks: 2 }), commands)
 */
export function createManagerPair(options: ManagerCommandOptions = {}): { model: ManagerModel; real: ManagerSystem } {
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

const IDS = ['a', 'b', 'c', 'd'] as const
const OWNERS = ['main', 'sub'] as const

/**
 * The commands: register, complete, fail, cancel, reserve, lease, acknowledge, release, mark as notified, change the limit, hand
 * over an owner, let time pass. After each of them manager and model must look the same.
 * @example
 * const property = fc.property(fc.commands([...managerCommands(), ...mine], { maxCommands: 50 }), (commands) => {
 *   fc.modelRun(() => createManagerPair(), commands)
 * })
 */
export function managerCommands(): fc.Arbitrary<ManagerCommand>[] {
  const id = fc.constantFrom(...IDS)
  const owner = fc.constantFrom(...OWNERS)
  const someone = fc.option(owner, { nil: undefined })
  const nth = fc.nat(3)
  // Named twice: what the rest can only follow from.
  const tell = fc.tuple(someone, fc.boolean()).map(([owner, isExclusive]) => lease(owner, isExclusive))
  const complete = id.map((id) => end(id, 'completed'))
  const begin = fc.tuple(id, owner).map(([id, owner]) => register(id, owner, undefined))
  return [
    ...[begin, begin, complete, complete, tell, tell],
    fc.tuple(id, owner, fc.option(nth, { nil: undefined })).map(([id, owner, nth]) => register(id, owner, nth)),
    id.map((id) => end(id, 'failed')),
    id.map((id) => end(id, 'cancelled')),
    fc.constantFrom(1, 10).map(reserve),
    nth.map((nth) => endLease(nth, true)),
    nth.map((nth) => endLease(nth, false)),
    id.map(markNotified),
    fc.integer({ min: -1, max: 3 }).map(setMax),
    fc.tuple(owner, someone).map(([owner, heir]) => releaseOwner(owner, heir)),
    fc.constantFrom(0, 1, 20).map(advance),
  ]
}

/**
 * A command of one's own, which compares manager and model when it is done.
 * @param name what it is called in a counterexample
 * @param act does it to both; what it returns of each must be the same
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
      tellAll(model.ledger)
      assert.deepStrictEqual(actual, expected, `${name}: the manager does not answer as its model`)
      compareManager(model, real, name)
    },
    toString: () => name,
  }
}

/**
 * Compares all that can be seen of a manager with its model, for a command that does not go through `managerCommand`.
 * @example
 * run: (model, real) => {
 *   doSomething(model, real)
 *   compareManager(model, real, 'something')
 * }
 * @throws AssertionError at the first difference
 */
export function compareManager({ ledger: model }: ManagerModel, { manager }: ManagerSystem, after: string): void {
  const shown = { records: manager.getAllTasks().map(show), room: manager.canLaunchAsync().allowed }
  const expected = { records: model.tasks.map(({ record }) => show(record)), room: ledger.hasRoom(model) }
  assert.deepStrictEqual(shown, expected, `after ${after}: records or room`)
  for (const owner of [undefined, ...OWNERS]) {
    const lists = { running: manager.getRunningTasks(owner), pending: manager.getPendingNotifications(owner) }
    const wanted = { running: ledger.running(model, owner), pending: ledger.pending(model, owner) }
    assert.deepStrictEqual(lists.running.map(idOf), wanted.running.map(idOfTask), `after ${after}: what runs`)
    assert.deepStrictEqual(lists.pending.map(idOf), wanted.pending.map(idOfTask), `after ${after}: what is owed`)
  }
}

type Shown = Pick<ledger.ModelRecord, 'id' | 'owner' | 'status' | 'delivery' | 'launchedAt' | 'seq'> & {
  readonly completedAt?: number
  readonly notifiedAt?: number
}

const show = ({ id, owner, status, delivery, launchedAt, seq, completedAt, notifiedAt }: Shown) => ({
  ...{ id, owner, status, delivery, launchedAt, seq, completedAt, notifiedAt },
})

const idOf = ({ id }: { readonly id: string }): string => id
const idOfTask = ({ record }: ModelTask): string => record.id

function outcomeOf(act: () => unknown): unknown {
  try {
    return { returned: act() }
  } catch (error) {
    return { threw: (error as Error).name }
  }
}

/** Nobody listens in these commands: whatever is to be told is told, and what owes nothing is forgotten. */
function tellAll(model: Ledger): void {
  do {
    for (const item of model.outbox.splice(0)) {
      if (!('transition' in item) || item.transition.kind !== 'status' || item.transition.to === 'running') continue
      item.task.isAnnounced = true
      ledger.prune(model)
    }
    ledger.prune(model)
  } while (model.outbox.length > 0)
}

class Refusal extends Error {
  constructor(override readonly name: string) {
    super(name)
  }
}

const pick = <T>(list: readonly T[], nth: number): T | undefined => list[list.length - 1 - (nth % list.length)]

const register = (id: string, owner: string, nth: number | undefined): ManagerCommand =>
  managerCommand(`register ${id} for ${owner}${nth === undefined ? '' : `, reservation ${nth}`}`, {
    model: ({ ledger: model, reservations }) => {
      if (ledger.find(model, id) !== undefined) throw new Refusal('TaskIdInUseError')
      const reservation = nth === undefined ? undefined : (pick(reservations, nth) ?? undefined)
      if (reservation !== undefined && !ledger.liveReservations(model).includes(reservation)) {
        throw new Refusal('ReservationError')
      }
      ledger.admit(model, newTask(id, owner, model.now), false, reservation)
    },
    real: ({ manager, reservations }) => {
      const reservation = nth === undefined ? undefined : (pick(reservations, nth) ?? undefined)
      manager.registerTask({ id, owner, subagentName: 'agent', goalPrompt: 'goal' }, reservation)
    },
  })

const end = (id: string, status: 'completed' | 'failed' | 'cancelled'): ManagerCommand =>
  managerCommand(`${id} is ${status}`, {
    model: ({ ledger: model }) => {
      const task = ledger.find(model, id)
      if (task?.record.status !== 'running') return false
      ledger.settle(model, task, { status })
      return true
    },
    real: ({ manager }) => {
      if (status === 'completed') return manager.completeTask(id, {})
      return status === 'failed' ? manager.failTask(id, 'no luck') : manager.cancelTask(id)
    },
  })

const reserve = (ttlMs: number): ManagerCommand => ({
  check: () => true,
  run: (model, real) => {
    const id = real.manager.tryReserveAsyncSlot({ ttlMs })
    assert.equal(id !== null, ledger.hasRoom(model.ledger), 'a reservation is given when there is room')
    if (id !== null) model.ledger.reservations.set(id, model.ledger.now + ttlMs)
    real.reservations.push(id)
    model.reservations.push(id)
    compareManager(model, real, 'a reservation')
  },
  toString: () => `reserve for ${ttlMs} ms`,
})

const lease = (owner: string | undefined, isExclusive: boolean): ManagerCommand =>
  managerCommand(`lease what is owed to ${owner ?? 'all'}${isExclusive ? ', alone' : ''}`, {
    model: ({ ledger: model, leases }) => {
      const taken = ledger.takeLease(model, `lease-${leases.length}`, owner, isExclusive)
      leases.push(taken)
      return taken?.tasks.map(idOfTask)
    },
    real: ({ manager, leases }) => {
      const taken = manager.lease({ exclusive: isExclusive, ...(owner !== undefined && { owner }) })
      leases.push(taken)
      return taken?.tasks.map(idOf)
    },
  })

/** Each lease ends once in these commands: what comes later is the host's other business. */
const endLease = (nth: number, isAccepted: boolean): ManagerCommand =>
  managerCommand(`${isAccepted ? 'acknowledge' : 'release'} lease ${nth}`, {
    model: ({ ledger: model, leases }) => {
      const taken = pick(leases, nth)
      if (taken === undefined) return
      leases[leases.indexOf(taken)] = undefined
      if (isAccepted) ledger.acknowledge(model, taken)
      else ledger.release(model, taken)
    },
    real: ({ leases }) => {
      const taken = pick(leases, nth)
      if (taken === undefined) return
      leases[leases.indexOf(taken)] = undefined
      if (isAccepted) taken.acknowledge()
      else taken.release()
    },
  })

const markNotified = (id: string): ManagerCommand =>
  managerCommand(`mark ${id} as notified`, {
    model: ({ ledger: model }) => ledger.notify(model, id),
    real: ({ manager }) => manager.markNotified(id),
  })

const setMax = (max: number): ManagerCommand =>
  managerCommand(`limit ${max}`, {
    model: ({ ledger: model }) => {
      model.max = max
    },
    real: ({ manager }) => manager.setMaxAsyncTasks(max),
  })

const releaseOwner = (owner: string, heir: string | undefined): ManagerCommand =>
  managerCommand(`release ${owner}${heir === undefined ? '' : ` to ${heir}`}`, {
    model: ({ ledger: model }) => ledger.releaseOwner(model, owner, heir),
    real: ({ manager }) => manager.releaseOwner(owner, heir === undefined ? {} : { to: heir }),
  })

const advance = (ms: number): ManagerCommand =>
  managerCommand(`${ms} ms pass`, {
    model: ({ ledger: model }) => {
      model.now += ms
    },
    real: ({ clock }) => clock.advance(ms),
  })

function newTask(id: string, owner: string, now: number): ModelTask {
  return {
    record: {
      ...{ id, owner, subagentName: 'agent', goalPrompt: 'goal' },
      ...{ status: 'running', delivery: 'none', launchedAt: now, seq: 0 },
    },
    ...{ isLaunched: false, hasSlot: true, graceMs: 0, isOverdue: false, lease: undefined, claims: [] },
    ...{ isDisowned: false, isAccepted: false, isAnnounced: false, isUnread: false, isLong: false, text: '' },
  }
}
