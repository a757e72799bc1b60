/**
 * The parent of every task: it admits them, keeps their records and the ledger of what is owed, and prunes.
 *
 * R1  Launches in their slots and live reservations never exceed the maximum, unless it was lowered under them.
 * R2  An id that a retained record holds is never admitted again.
 * R3  A task that ends leaves a frozen record in the same transition, and its actor is let go.
 * R4  An entry is in at most one lease, and an owner has at most one exclusive lease out.
 * R5  Only records that owe nothing and whose handlers have run are pruned, the earliest ended first; one that owes
 *     is passed over.
 * R6  Every change is numbered and put in the outbox in that order; no host code runs inside a transition.
 * R7  A disposed registry changes nothing more.
 *
 * Children are made with `createActor({ parent })` in an assignment and started by the action that follows: `spawn`
 * copies the list of children at every launch.
 */
import { assign, createActor, setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'
import { asyncTaskMachine, type AsyncTaskMachine } from './async-task.js'
import type { AsyncTaskInfo, Settlement, TaskAdmission } from './records.js'
import { TaskTable, type LeaseRequest, type TaskEntry, type TaskTableOptions } from './task-table.js'

/** What the registry starts with. */
export interface TaskRegistryInput extends TaskTableOptions {
  /** The chart its tasks run, with the host's effects provided. */
  readonly task?: AsyncTaskMachine
}

interface TaskRegistryContext {
  readonly table: TaskTable
  readonly task: AsyncTaskMachine
}

/** Takes a task in. */
export interface TaskRegister {
  /** What kind of event this is. */
  readonly type: 'task.register'
  /** The task. */
  readonly admission: TaskAdmission
  /** The reservation that it uses up, if it has one. */
  readonly reservationId?: string
  /** A launch: bound by the maximum, and its slot is held until `slot.release`. */
  readonly isLaunched: boolean
}

/** What changes the registry; each event is one transition of the ledger. */
export type TaskRegistryEvent =
  | TaskRegister
  | { readonly type: 'task.restore'; readonly record: AsyncTaskInfo }
  | { readonly type: 'task.notify'; readonly taskIds: readonly string[] }
  | { readonly type: `xstate.done.actor.task.${string}`; readonly actorId: string; readonly output: Settlement }
  | { readonly type: 'slot.release'; readonly slot: number }
  | { readonly type: 'reservation.take'; readonly reservationId: string; readonly ttlMs: number }
  | { readonly type: 'reservation.cancel'; readonly reservationId: string }
  | { readonly type: 'limit.set'; readonly max: number }
  | { readonly type: 'lease.take'; readonly request: LeaseRequest }
  | { readonly type: 'lease.acknowledge'; readonly deliveryId: string; readonly late?: readonly TaskEntry[] }
  | { readonly type: 'lease.release'; readonly deliveryId: string }
  | { readonly type: 'owner.release'; readonly owner: string; readonly heir?: string }
  | { readonly type: 'text.cut'; readonly taskIds: readonly string[] }
  | { readonly type: 'text.read'; readonly taskId: string }
  | { readonly type: 'history.prune' }
  | { readonly type: 'registry.dispose' }

const TASK_ACTOR_PREFIX = 'task.'

/** The chart of the registry, the parent of every task's actor. It needs nothing from a host. */
export const taskRegistryMachine = setup({
  types: {
    context: {} as TaskRegistryContext,
    events: {} as TaskRegistryEvent,
    input: {} as TaskRegistryInput,
  },
  guards: {
    canAdmit: ({ context, event }) => {
      if (event.type !== 'task.register') return false
      const isLimited = event.isLaunched && event.admission.isForeground !== true
      return context.table.admissionRefusal(event.admission.id, event.reservationId, isLimited) === undefined
    },
    canReserve: ({ context }) => context.table.hasRoom(),
    hasRoom: ({ context }) => context.table.hasRoom(),
    isFull: ({ context }) => !context.table.hasRoom(),
    isOverLimit: ({ context }) => context.table.isOverLimit(),
    isWithinLimit: ({ context }) => !context.table.isOverLimit(),
  },
  actions: {
    admitTask: assign(({ context, event, self }) => {
      if (event.type !== 'task.register') return {}
      const { id, subagentName, timeoutMs, graceMs } = event.admission
      const input = { id, subagentName, graceMs, ...(timeoutMs !== undefined && { timeoutMs }) }
      const ref = createActor(context.task, { id: TASK_ACTOR_PREFIX + id, input, parent: self })
      context.table.admit(event.admission, ref, event.isLaunched, event.reservationId)
      return {}
    }),
    startTask: ({ context, event }) => {
      if (event.type === 'task.register') context.table.get(event.admission.id)?.ref?.start()
    },
    settleTask: ({ context, event }) => {
      if (!('actorId' in event)) return
      const entry = context.table.get(event.actorId.slice(TASK_ACTOR_PREFIX.length))
      if (entry !== undefined) context.table.settle(entry, event.output)
    },
    restoreTask: ({ context, event }) => {
      if (event.type === 'task.restore') context.table.restore(event.record)
    },
    noteNotified: ({ context, event }) => {
      if (event.type === 'task.notify') context.table.notify(event.taskIds)
    },
    releaseSlot: ({ context, event }) => {
      if (event.type === 'slot.release') context.table.releaseSlot(event.slot)
    },
    takeReservation: ({ context, event }) => {
      if (event.type === 'reservation.take') context.table.reserve(event.reservationId, event.ttlMs)
    },
    cancelReservation: ({ context, event }) => {
      if (event.type === 'reservation.cancel') context.table.cancelReservation(event.reservationId)
    },
    setLimit: ({ context, event }) => {
      if (event.type === 'limit.set') context.table.max = event.max
    },
    takeLease: ({ context, event }) => {
      if (event.type === 'lease.take') context.table.takeLease(event.request)
    },
    acknowledgeLease: ({ context, event }) => {
      if (event.type !== 'lease.acknowledge') return
      if (event.late === undefined) context.table.acknowledgeLease(event.deliveryId)
      else context.table.acceptLate(event.late, event.deliveryId)
    },
    releaseLease: ({ context, event }) => {
      if (event.type === 'lease.release') context.table.releaseLease(event.deliveryId)
    },
    releaseOwner: ({ context, event }) => {
      if (event.type === 'owner.release') context.table.releaseOwner(event.owner, event.heir)
    },
    keepUnread: ({ context, event }) => {
      if (event.type === 'text.cut') context.table.keepUnread(event.taskIds)
    },
    noteRead: ({ context, event }) => {
      if (event.type === 'text.read') context.table.noteRead(event.taskId)
    },
    pruneHistory: ({ context }) => {
      context.table.prune()
    },
  },
}).createMachine({
  id: 'taskRegistry',
  description: 'The parent of every background task: limit, reservations, ledger, history.',
  context: ({ input }) => ({ table: new TaskTable(input), task: input.task ?? asyncTaskMachine }),
  initial: 'open',
  states: {
    open: {
      description: 'Tasks come and go.',
      initial: 'available',
      states: {
        available: {
          description: 'A launch would find a free slot.',
          always: [
            { guard: 'isOverLimit', target: 'draining', description: 'More run than may.' },
            { guard: 'isFull', target: 'full', description: 'The last slot was taken.' },
          ],
        },
        full: {
          description: 'Every slot is taken or reserved. A reservation that expires is noticed at the next event.',
          always: [
            { guard: 'isOverLimit', target: 'draining', description: 'More run than may.' },
            { guard: 'hasRoom', target: 'available', description: 'A slot is free again.' },
          ],
        },
        draining: {
          description:
            'The maximum was lowered, or passed by plain registrations: nothing is stopped, nothing launched.',
          always: { guard: 'isWithinLimit', target: 'full', description: 'No more run than may.' },
        },
      },
      on: {
        'task.register': {
          guard: 'canAdmit',
          actions: ['admitTask', 'startTask'],
          description: 'A task begins, if its id is free and there is room for a launch.',
        },
        'task.restore': {
          actions: ['restoreTask', 'pruneHistory'],
          description: 'A record from before a restart is taken back.',
        },
        'task.notify': {
          actions: ['noteNotified', 'pruneHistory'],
          description: 'The host says that its model has been told of these.',
        },
        'xstate.done.actor.task.*': {
          actions: 'settleTask',
          description: 'The chart of a task has ended: its record and its entry in the ledger are written.',
        },
        'slot.release': { actions: 'releaseSlot', description: 'A launched run has settled, or its grace has passed.' },
        'reservation.take': {
          guard: 'canReserve',
          actions: 'takeReservation',
          description: 'A slot is kept for a launch that is about to come.',
        },
        'reservation.cancel': { actions: 'cancelReservation', description: 'The launch does not come.' },
        'limit.set': { actions: ['setLimit', 'pruneHistory'], description: 'The maximum changes; nothing is stopped.' },
        'lease.take': { actions: 'takeLease', description: 'A message takes what it carries.' },
        'lease.acknowledge': {
          actions: ['acknowledgeLease', 'pruneHistory'],
          description: 'A message was accepted: what it carried is delivered, also when its lease had been returned.',
        },
        'lease.release': {
          actions: ['releaseLease', 'pruneHistory'],
          description: 'A message was not accepted: what it carried is owed again.',
        },
        'owner.release': {
          actions: ['releaseOwner', 'pruneHistory'],
          description: 'What an owner has goes to another owner, or to nobody.',
        },
        'text.cut': {
          actions: ['keepUnread', 'pruneHistory'],
          description: 'A message told only a part of these: their records stay until they were read.',
        },
        'text.read': { actions: ['noteRead', 'pruneHistory'], description: 'Someone read the rest.' },
        'history.prune': { actions: 'pruneHistory', description: 'Records that owe nothing may be dropped.' },
        'registry.dispose': { target: 'disposed', description: 'The host ends everything.' },
      },
    },
    disposed: {
      type: 'final',
      description: 'Nothing changes any more; the records can still be read.',
    },
  },
})

/** The type of `taskRegistryMachine`. */
export type TaskRegistryMachine = typeof taskRegistryMachine
/** An actor that runs `taskRegistryMachine`. */
export type TaskRegistryRef = ActorRefFrom<TaskRegistryMachine>
/** A snapshot of such an actor. */
export type TaskRegistrySnapshot = SnapshotFrom<TaskRegistryMachine>
