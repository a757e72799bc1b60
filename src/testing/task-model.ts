/**
 * A model of the task manager: what the registry must do according to the specification, in the simplest way. It is one list of
 * tasks that every question searches from end to end; there are no actors, no indexes, and no callbacks. The commands of
 * `manager-commands.ts` compare a manager with it.
 *
 * Tasks that wait for a slot, repeated runs and budgets are not in it: what they do depends on time, and they have a model of their own in
 * `test/race/waiting-tasks.property.ts`.
 *
 * It is longer than most files so that the rules of the ledger can be read in one place.
 */

/** The state of a task. */
export type Status = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
/** The state of a task's result in the ledger. */
export type Delivery = 'none' | 'owed' | 'leased' | 'delivered'

/** The fields of a record. Times are in ms since the epoch. */
export interface ModelRecord {
  /** The id of the task. */
  id: string
  /** The name of the subagent. */
  subagentName: string
  /** What the subagent is to do. */
  goalPrompt: string
  /** Whom the result is owed to. */
  owner: string
  /** The state of the task. */
  status: Status
  /** The state of its result. */
  delivery: Delivery
  /** When it was launched or registered. */
  launchedAt: number
  /** The number of the last change of its status. */
  seq: number
  /** When it ended. */
  completedAt?: number
  /** When its result was delivered. */
  notifiedAt?: number
  /** What its run returned. */
  output?: object
  /** Why it failed. */
  error?: string
  /** Why it was cancelled. */
  cancelReason?: string
  /** The task whose run launched it. */
  parentId?: string
  /** How many tasks are above it. */
  depth?: number
  /** The tasks that its run had launched and that ran when it ended. */
  runningChildren?: readonly string[]
  /** What its run returned after its deadline. */
  lateOutput?: object
  /** The name of the error that its run threw. */
  errorName?: string
  /** The code of the error. */
  errorCode?: string
  /** What it had written when it was cancelled or exceeded its deadline. */
  outputTail?: string
  /** Its deadline, in ms after the launch. */
  timeoutMs?: number
  /** The progress it last reported. */
  progress?: object
  /** The name of its abort controller. */
  abortController?: string
}

/** A task: its record, and what the record does not show. */
export interface ModelTask {
  /** The record. Each change replaces it, so that a record handed out stays as it was. */
  record: Readonly<ModelRecord>
  /** Whether it was launched. The slot of a launched task is released when its run has ended, which may be after the task. */
  readonly isLaunched: boolean
  /** Whether it holds a slot. */
  hasSlot: boolean
  /** The lease that holds its result. */
  lease: ModelLease | undefined
  /** Leases of waits, which get its result before any reminder. */
  claims: ModelLease[]
  /** Whether its owner was released without an heir, so that it will owe nothing. */
  isDisowned: boolean
  /** Whether a message with its result was accepted after the lease had been released. */
  isAccepted: boolean
  /** Whether the handlers of its end have run. */
  isHandled: boolean
  /** Whether a message carried only a part of its result, and the rest was not read. */
  isUnread: boolean
}

/** A lease: the results that one message, or one wait, carries. */
export interface ModelLease {
  /** The id of the lease. */
  id: string
  /** The owner, for an exclusive lease: an owner has one at most. */
  exclusiveOwner: string | undefined
  /** The tasks whose results it holds. */
  tasks: ModelTask[]
}

/** A change of one task. */
export interface ModelTransition {
  /** What changed. */
  kind: 'status' | 'delivery' | 'owner' | 'history'
  /** Its number among all changes, from 1. */
  seq: number
  /** The id of the task. */
  taskId: string
  /** The owner of the task. */
  owner: string
  /** The state before; null for a new task. */
  from: string | null
  /** The state after. */
  to: string
  /** When, in ms since the epoch. */
  at: number
  /** The task's record after the change. */
  record: Readonly<ModelRecord>
  /** The lease, for a change of the delivery. */
  deliveryId?: string
}

/** What the manager has yet to emit: a change of a task, or the end of an owner's exclusive lease. */
export type OutboxItem = { transition: ModelTransition; task: ModelTask } | { leaseEndedOf: string }

/** The state of the model. The functions of this module query and change it. */
export interface Ledger {
  /** The time, in ms since the epoch. */
  now: number
  /** How many tasks may run at once; -1 for no limit. */
  max: number
  /** Whether the result of a cancelled task is owed. */
  readonly notifyCancelled: boolean
  /** The number of the last change. */
  seq: number
  /** The retained tasks, in the order of registration. */
  tasks: ModelTask[]
  /** The tasks that hold a slot. A cancelled launch may hold its slot longer than its record is retained. */
  slots: ModelTask[]
  /** The expiry of each reservation, in ms since the epoch, by id. */
  readonly reservations: Map<string, number>
  /** The leases, by id. */
  readonly leases: Map<string, ModelLease>
  /** What the manager has yet to emit, in order. */
  readonly outbox: OutboxItem[]
}

/**
 * Makes a ledger without tasks.
 * @param max how many tasks may run at once; -1 for no limit
 * @param now in ms since the epoch
 * @example
 * const ledger = emptyLedger(2, false, 0)
 */
export function emptyLedger(max: number, notifyCancelled: boolean, now: number): Ledger {
  return {
    now,
    max,
    notifyCancelled,
    seq: 0,
    tasks: [],
    slots: [],
    reservations: new Map(),
    leases: new Map(),
    outbox: [],
  }
}

/** Makes a task that runs, to be passed to `admit`. */
export function newTask(
  fields: Omit<ModelRecord, 'status' | 'delivery' | 'seq'>,
  { isLaunched = false }: { readonly isLaunched?: boolean } = {},
): ModelTask {
  return {
    record: { ...fields, status: 'running', delivery: 'none', seq: 0 },
    isLaunched,
    ...{ hasSlot: false, lease: undefined, claims: [] },
    ...{ isDisowned: false, isAccepted: false, isHandled: false, isUnread: false },
  }
}

// Queries

/** The retained task with this id. */
export const find = (ledger: Ledger, id: string): ModelTask | undefined =>
  ledger.tasks.find((task) => task.record.id === id)

const isOf = (owner: string | undefined) => (task: ModelTask) => owner === undefined || task.record.owner === owner

const bySeq = (a: ModelTask, b: ModelTask): number => a.record.seq - b.record.seq

/** The running tasks of an owner, or of all owners, in the order of registration. */
export const running = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => task.record.status === 'running').filter(isOf(owner))

/** The tasks whose results are owed and not leased, in the order in which they ended. */
export const owed = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks
    .filter((task) => task.record.delivery === 'owed')
    .filter(isOf(owner))
    .sort(bySeq)

/** The tasks whose results are leased. */
export const leased = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => task.record.delivery === 'leased').filter(isOf(owner))

/** The ids of the reservations that have not expired. */
export function liveReservations(ledger: Ledger): string[] {
  return [...ledger.reservations].filter(([, expiry]) => ledger.now < expiry).map(([id]) => id)
}

/** Whether a slot is free. */
export const hasRoom = (ledger: Ledger): boolean =>
  ledger.max === -1 || ledger.slots.length + liveReservations(ledger).length < ledger.max

const historyLimit = (ledger: Ledger): number => (ledger.max === -1 ? 10 : 2 * ledger.max)

const isOwed = ({ record }: ModelTask): boolean => record.delivery === 'owed' || record.delivery === 'leased'

/** Whether the history may drop it: it has ended, its handlers have run, it owes nothing, and nothing is left to read. */
const isDroppable = (task: ModelTask): boolean =>
  task.record.status !== 'running' && task.isHandled && !isOwed(task) && !task.isUnread

// Changes

function emit(
  ledger: Ledger,
  task: ModelTask,
  change: Pick<ModelTransition, 'kind' | 'from' | 'to'>,
  deliveryId?: string,
) {
  const { record } = task
  const transition = {
    ...change,
    seq: change.kind === 'status' ? record.seq : ++ledger.seq,
    taskId: record.id,
    owner: record.owner,
    at: ledger.now,
    record,
    ...(deliveryId !== undefined && { deliveryId }),
  }
  ledger.outbox.push({ transition, task })
}

/** The owner of what the run of a task launches. */
export const ownerOfRun = (taskId: string): string => `run:${taskId}`

/** The running tasks that the run of a task has launched, and owns. */
export const childrenOf = (ledger: Ledger, { record }: ModelTask): ModelTask[] => running(ledger, ownerOfRun(record.id))

/** Registers a task, with a reservation or without. A foreground task takes no slot, and a child none of these. */
export function admit(ledger: Ledger, task: ModelTask, isForeground: boolean, reservationId: string | undefined): void {
  if (reservationId !== undefined) ledger.reservations.delete(reservationId)
  task.record = { ...task.record, seq: ++ledger.seq }
  ledger.tasks.push(task)
  task.hasSlot = !isForeground && task.record.parentId === undefined
  if (task.hasSlot) ledger.slots.push(task)
  emit(ledger, task, { kind: 'status', from: null, to: 'running' })
}

/** Frees a task's slot. */
export function releaseSlot(ledger: Ledger, task: ModelTask): void {
  task.hasSlot = false
  ledger.slots = ledger.slots.filter((other) => other !== task)
}

/** Ends a running task. What its run owns passes to its owner. */
export function settle(
  ledger: Ledger,
  task: ModelTask,
  end: {
    status: Status
    output?: object
    error?: string
    lateOutput?: object
    errorName?: string
    errorCode?: string
    outputTail?: string
    cancelReason?: string
  },
): void {
  const owes = !task.isDisowned && (end.status !== 'cancelled' || ledger.notifyCancelled)
  const claim = owes ? task.claims.shift() : undefined
  const delivery = !owes ? 'none' : claim ? 'leased' : 'owed'
  const children = end.status === 'cancelled' ? [] : childrenOf(ledger, task).map(({ record }) => record.id)
  const named = children.length > 0 && { runningChildren: children }
  task.record = { ...task.record, ...end, ...named, delivery, completedAt: ledger.now, seq: ++ledger.seq }
  if (!task.isLaunched) releaseSlot(ledger, task)
  emit(ledger, task, { kind: 'status', from: 'running', to: end.status })
  if (claim) putIn(claim, task)
  if (owes) emit(ledger, task, { kind: 'delivery', from: 'none', to: delivery }, claim?.id)
  releaseOwner(ledger, ownerOfRun(task.record.id), task.isDisowned ? undefined : task.record.owner)
}

function putIn(lease: ModelLease, task: ModelTask): void {
  task.lease = lease
  lease.tasks.push(task)
}

function takeOut(task: ModelTask): void {
  const { lease } = task
  if (lease) lease.tasks = lease.tasks.filter((other) => other !== task)
  task.lease = undefined
}

function setDelivery(ledger: Ledger, task: ModelTask, to: Delivery, deliveryId?: string): void {
  const from = task.record.delivery
  task.record = { ...task.record, delivery: to, ...(to === 'delivered' && { notifiedAt: ledger.now }) }
  emit(ledger, task, { kind: 'delivery', from, to }, deliveryId)
}

function deliver(ledger: Ledger, task: ModelTask, deliveryId?: string): void {
  if (!isOwed(task)) return
  takeOut(task)
  setDelivery(ledger, task, 'delivered', deliveryId)
}

const isDelivering = (ledger: Ledger, owner: string): boolean =>
  [...ledger.leases.values()].some((lease) => lease.exclusiveOwner === owner)

/** Leases what is owed. Returns undefined when nothing is owed, or when the owner has another exclusive lease. */
export function takeLease(ledger: Ledger, id: string, owner?: string, isExclusive = false): ModelLease | undefined {
  const exclusiveOwner = isExclusive ? owner : undefined
  if (exclusiveOwner !== undefined && isDelivering(ledger, exclusiveOwner)) return undefined
  return lease(ledger, { id, exclusiveOwner, tasks: [] }, owed(ledger, owner))
}

/** Leases, for a wait, what its tasks owe now, and what they will owe when they end, before any reminder gets it. */
export function takeClaim(ledger: Ledger, id: string, awaited: readonly ModelTask[]): ModelLease | undefined {
  const claimed = awaited.filter(({ record }) => record.status === 'running' || record.delivery === 'leased')
  const ended = awaited.filter(({ record }) => record.delivery === 'owed').sort(bySeq)
  const claim = lease(ledger, { id, exclusiveOwner: undefined, tasks: [] }, ended, claimed.length > 0)
  if (claim) for (const task of claimed) task.claims.push(claim)
  return claim
}

function lease(ledger: Ledger, made: ModelLease, tasks: ModelTask[], mayBeEmpty = false): ModelLease | undefined {
  if (tasks.length === 0 && !mayBeEmpty) return undefined
  ledger.leases.set(made.id, made)
  for (const task of tasks) {
    putIn(made, task)
    setDelivery(ledger, task, 'leased', made.id)
  }
  return made
}

/** Ends a lease whose message was accepted: its results are delivered. */
export function acknowledge(ledger: Ledger, lease: ModelLease): void {
  for (const task of lease.tasks) deliver(ledger, task, lease.id)
  endLease(ledger, lease)
}

/** Ends a lease whose message was not accepted: its results go to the waits that claim them, and the rest is owed again. */
export function release(ledger: Ledger, lease: ModelLease): void {
  for (const task of lease.tasks) giveBack(ledger, task, lease)
  endLease(ledger, lease)
}

function giveBack(ledger: Ledger, task: ModelTask, lease: ModelLease): void {
  if (task.isAccepted) {
    deliver(ledger, task, lease.id)
    return
  }
  takeOut(task)
  if (task.isDisowned) {
    setDelivery(ledger, task, 'none', lease.id)
    return
  }
  const claim = task.claims.shift()
  if (!claim) {
    setDelivery(ledger, task, 'owed', lease.id)
    return
  }
  putIn(claim, task)
  emit(ledger, task, { kind: 'delivery', from: 'leased', to: 'leased' }, claim.id)
}

function endLease(ledger: Ledger, lease: ModelLease): void {
  ledger.leases.delete(lease.id)
  for (const task of ledger.tasks) task.claims = task.claims.filter((claim) => claim !== lease)
  if (lease.exclusiveOwner !== undefined) ledger.outbox.push({ leaseEndedOf: lease.exclusiveOwner })
}

/** A message was accepted after its lease had been released. */
export function acceptLate(ledger: Ledger, tasks: readonly ModelTask[], deliveryId: string): void {
  for (const task of tasks) {
    if (task.record.delivery === 'owed') deliver(ledger, task, deliveryId)
    else task.isAccepted = true
  }
}

/** Marks the result of a task as delivered. */
export function markNotified(ledger: Ledger, id: string): void {
  const task = find(ledger, id)
  if (task) deliver(ledger, task)
}

/**
 * Hands what an owner owes and runs to an heir; without an heir it is no longer owed.
 * @returns how many tasks were affected
 */
export function releaseOwner(ledger: Ledger, owner: string, heir: string | undefined): number {
  const all = [running(ledger, owner), owed(ledger, owner), leased(ledger, owner)] as const
  if (heir === owner) return all.flat().length
  for (const task of all.flat()) {
    if (heir !== undefined) {
      task.record = { ...task.record, owner: heir }
      emit(ledger, task, { kind: 'owner', from: owner, to: heir })
    } else if (task.record.delivery === 'owed') setDelivery(ledger, task, 'none')
    else task.isDisowned = true
  }
  return all.flat().length
}

/** Drops the records that ended earliest and owe nothing, until the history is within its limit. */
export function prune(ledger: Ledger): void {
  for (;;) {
    const ended = ledger.tasks.filter((task) => task.record.status !== 'running')
    const [oldest] = ended.filter(isDroppable).sort(bySeq)
    if (ended.filter((task) => !task.isUnread).length <= historyLimit(ledger) || !oldest) return
    ledger.tasks = ledger.tasks.filter((task) => task !== oldest)
    emit(ledger, oldest, { kind: 'history', from: 'retained', to: 'pruned' })
  }
}
