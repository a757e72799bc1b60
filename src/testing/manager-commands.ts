/** The race kit's fast-check commands for a task manager and its model. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { omitUndefined } from '../data/omit-undefined.js'
import {
  compareManager,
  idOf,
  idOfTask,
  managerCommand,
  OWNERS,
  type ManagerCommand,
  type ManagerSystem,
} from './manager-pair.js'
import * as ledger from './task-model.js'
import { holdsSlot, type TerminalStatus } from '../../machines/task-status.js'

const IDS = ['a', 'b', 'c', 'd'] as const

/**
 * Returns an arbitrary for each command of the kit: register, complete, fail, cancel, reserve, lease, acknowledge, release, mark as notified, change the
 * limit, release an owner, advance the clock. After each command, the manager must equal its model.
 * @returns the arbitraries, for `fc.commands`
 * @example
 * // `mine` are your own commands, made with `managerCommand`.
 * fc.assert(fc.property(fc.commands([...managerCommands(), ...mine], { maxCommands: 50 }), (commands) => {
 *   fc.modelRun(() => createManagerPair(), commands)
 * }))
 */
export function managerCommands(): fc.Arbitrary<ManagerCommand>[] {
  const id = fc.constantFrom(...IDS)
  const owner = fc.constantFrom(...OWNERS)
  const maybeOwner = fc.option(owner, { nil: undefined })
  const nth = fc.nat(3)
  const begin = fc.tuple(id, owner).map(([id, owner]) => register(id, owner, undefined))
  const complete = id.map((id) => end(id, 'completed', ({ manager }) => manager.completeTask(id, {})))
  const takeLease = fc.tuple(maybeOwner, fc.boolean()).map(([owner, isExclusive]) => lease(owner, isExclusive))
  return [
    // Listed twice, so that they are drawn more often. Without them, the other commands have no effect.
    ...[begin, begin, complete, complete, takeLease, takeLease],
    fc.tuple(id, owner, fc.option(nth, { nil: undefined })).map(([id, owner, nth]) => register(id, owner, nth)),
    id.map((id) => end(id, 'failed', ({ manager }) => manager.failTask(id, 'no luck'))),
    id.map((id) => end(id, 'cancelled', ({ manager }) => manager.cancelTask(id))),
    fc.constantFrom(1, 10).map(reserve),
    nth.map((nth) => endLease(nth, true)),
    nth.map((nth) => endLease(nth, false)),
    id.map(markNotified),
    fc.integer({ min: -1, max: 3 }).map(setMax),
    fc.tuple(owner, maybeOwner).map(([owner, heir]) => releaseOwner(owner, heir)),
    fc.constantFrom(0, 1, 20).map(advance),
  ]
}

/** An error of the model. Its name is compared with the code of an error of the manager. */
class Refusal extends Error {
  constructor(override readonly name: string) {
    super(name)
  }
}

/** Returns the `nth` item, counted backwards from the last one, modulo the length. */
const pick = <T>(list: readonly T[], nth: number): T | undefined => list[list.length - 1 - (nth % list.length)]

const register = (id: string, owner: string, nth: number | undefined): ManagerCommand =>
  managerCommand(`register ${id} for ${owner}${nth === undefined ? '' : `, reservation ${nth}`}`, {
    model: ({ ledger: model, reservations }) => {
      if (ledger.find(model, id) !== undefined) throw new Refusal('TASK_ID_IN_USE')
      const reservation = nth === undefined ? undefined : (pick(reservations, nth) ?? undefined)
      if (reservation !== undefined && !ledger.liveReservations(model).includes(reservation)) {
        throw new Refusal('RESERVATION_UNKNOWN')
      }
      const task = ledger.newTask({ id, owner, subagentName: 'agent', goalPrompt: 'goal', launchedAt: model.now })
      ledger.admit(model, task, false, reservation)
    },
    real: ({ manager, reservations }) => {
      const reservation = nth === undefined ? undefined : (pick(reservations, nth) ?? undefined)
      manager.registerTask({ id, owner, subagentName: 'agent', goalPrompt: 'goal' }, reservation)
    },
  })

const end = (id: string, status: TerminalStatus, real: (system: ManagerSystem) => unknown): ManagerCommand =>
  managerCommand(`${id} is ${status}`, {
    model: ({ ledger: model }) => {
      const task = ledger.find(model, id)
      if (task === undefined || !holdsSlot(task.record.status)) return false
      ledger.settle(model, task, { status })
      return true
    },
    real,
  })

// The manager chooses the id of a reservation, and the model copies it.
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
  managerCommand(`lease what is owed to ${owner ?? 'all'}${isExclusive ? ', exclusively' : ''}`, {
    model: ({ ledger: model, leases }) => {
      const taken = ledger.takeLease(model, `lease-${leases.length}`, owner, isExclusive)
      leases.push(taken)
      return taken?.tasks.map(idOfTask)
    },
    real: ({ manager, leases }) => {
      const taken = manager.lease({ exclusive: isExclusive, ...omitUndefined({ owner }) })
      leases.push(taken)
      return taken?.tasks.map(idOf)
    },
  })

/** Ends each lease only once, because the model does not cover a second end. */
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
    model: ({ ledger: model }) => ledger.markNotified(model, id),
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
