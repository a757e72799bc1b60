/**
 * The model of a task manager: what the registry must do, as the specification says it, in the plainest way: one list of
 * tasks, looked through from end to end for every question. No actors, no indexes, no host code. The commands of
 * `manager-commands.ts` hold a manager against it, and this repository's own properties add who is told and when.
 *
 * It is longer than most files so that the rules of the ledger can be read in one place.
 */

/** Where a task stands. */
export type Status = 'running' | 'completed' | 'failed' | 'cancelled'
/** Where the message about the end of a task stands. */
export type Delivery = 'none' | 'owed' | 'leased' | 'delivered'

/** The fields of a record, `abortController` by its name. */
export interface ModelRecord {
  /** The id of the task. */
  id: string
  /** The name of the subagent. */
  subagentName: string
  /** What it is to achieve. */
  goalPrompt: string
  /** Who is told of the end. */
  owner: string
  /** Where the task stands. */
  status: Status
  /** Where the message about its end stands. */
  delivery: Delivery
  /** In ms since the epoch. */
  launchedAt: number
  /** The number of the last change of status. */
  seq: number
  /** In ms since the epoch. */
  completedAt?: number
  /** In ms since the epoch. */
  notifiedAt?: number
  /** What its run returned. */
  output?: object
  /** What went wrong. */
  error?: string
  /** The deadline, in ms after the launch. */
  timeoutMs?: number
  /** How far it has come. */
  progress?: object
  /** The name of its controller. */
  abortController?: string
}

/** A task as the model keeps it: its record, and what a record does not show. */
export interface ModelTask {
  /** Replaced, never changed, so that what was handed out stays as it was. */
  record: Readonly<ModelRecord>
  /** Whether it was launched: then its slot outlives its record's end. */
  isLaunched: boolean
  /** Whether it holds a slot. */
  hasSlot: boolean
  /** How long it may wind down, in ms. */
  graceMs: number
  /** Whether its deadline has passed. */
  isOverdue: boolean
  /** The message that carries it. */
  lease: ModelLease | undefined
  /** Waits that get its end before any reminder does. */
  claims: ModelLease[]
  /** Whether its owner was released without an heir: it owes nothing more. */
  isDisowned: boolean
  /** Whether a message that carried it was accepted after its lease had been returned. */
  isAccepted: boolean
  /** Whether the handlers were told of its end. */
  isAnnounced: boolean
  /** Whether a message told only a part of it. */
  isUnread: boolean
  /** Whether its output is longer than a message may be. */
  isLong: boolean
  /** What it appended. */
  text: string
}

/** A message on its way, or a wait, and what it carries. */
export interface ModelLease {
  /** The lease's id. */
  id: string
  /** The owner whose only exclusive lease it is. */
  exclusiveOwner: string | undefined
  /** What it carries. */
  tasks: ModelTask[]
}

/** A change of one task. */
export interface ModelTransition {
  /** What changed. */
  kind: 'status' | 'delivery' | 'owner' | 'history'
  /** Its number among all changes, from 1. */
  seq: number
  /** The task. */
  taskId: string
  /** Who is told of the task's end. */
  owner: string
  /** What it was; null for a task that is new. */
  from: string | null
  /** What it is now. */
  to: string
  /** When, in ms since the epoch. */
  at: number
  /** The task's record after the change. */
  record: Readonly<ModelRecord>
  /** The lease that changed, for a change of the delivery. */
  deliveryId?: string
}

/** What the host has to be told: a change of a task, or that an owner's delivery is over. */
export type Told = { transition: ModelTransition; task: ModelTask } | { leaseEndedOf: string }

/** The whole state of the model. The functions below ask it and change it. */
export interface Ledger {
  /** In ms since the epoch. */
  now: number
  /** How many tasks may run at once; -1 for no limit. */
  max: number
  /** Whether a cancelled task owes a message too. */
  readonly notifyCancelled: boolean
  /** The number of the last change. */
  seq: number
  /** The retained tasks, in the order of registration. */
  tasks: ModelTask[]
  /** Tasks that hold a slot; a cancelled launch holds its slot longer than its record lives. */
  slots: ModelTask[]
  /** When each expires. */
  readonly reservations: Map<string, number>
  /** The messages on their way, by id. */
  readonly leases: Map<string, ModelLease>
  /** What the host has yet to be told, in order. */
  readonly outbox: Told[]
}

/**
 * A ledger without tasks.
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

// Questions

/** The retained task of this id. */
export const find = (ledger: Ledger, id: string): ModelTask | undefined =>
  ledger.tasks.find((task) => task.record.id === id)

const isOf = (owner: string | undefined) => (task: ModelTask) => owner === undefined || task.record.owner === owner

const bySeq = (a: ModelTask, b: ModelTask): number => a.record.seq - b.record.seq

/** The tasks that run, of an owner or of all, in the order of registration. */
export const running = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => task.record.status === 'running').filter(isOf(owner))

/** What is owed and not on its way, in the order in which it ended. */
export const pending = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks
    .filter((task) => task.record.delivery === 'owed')
    .filter(isOf(owner))
    .sort(bySeq)

/** What is on its way. */
export const leased = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => task.record.delivery === 'leased').filter(isOf(owner))

/** An expired reservation is as if it had never been. */
export function liveReservations(ledger: Ledger): string[] {
  return [...ledger.reservations].filter(([, expiry]) => ledger.now < expiry).map(([id]) => id)
}

/** Whether a launch would find a slot. */
export const hasRoom = (ledger: Ledger): boolean =>
  ledger.max === -1 || ledger.slots.length + liveReservations(ledger).length < ledger.max

const historyLimit = (ledger: Ledger): number => (ledger.max === -1 ? 10 : 2 * ledger.max)

const isOwed = ({ record }: ModelTask): boolean => record.delivery === 'owed' || record.delivery === 'leased'

/** Ended, told, owing nothing, and read as far as anyone has to. */
const isDroppable = (task: ModelTask): boolean =>
  task.record.status !== 'running' && task.isAnnounced && !isOwed(task) && !task.isUnread

// Changes

function tell(
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

/** Registers a task; the reservation, if there is one, is used up. */
export function admit(ledger: Ledger, task: ModelTask, isForeground: boolean, reservationId: string | undefined): void {
  if (reservationId !== undefined) ledger.reservations.delete(reservationId)
  task.record = { ...task.record, seq: ++ledger.seq }
  ledger.tasks.push(task)
  task.hasSlot = !isForeground
  if (task.hasSlot) ledger.slots.push(task)
  tell(ledger, task, { kind: 'status', from: null, to: 'running' })
}

/** The run of a task has ended: its slot is free. */
export function releaseSlot(ledger: Ledger, task: ModelTask): void {
  task.hasSlot = false
  ledger.slots = ledger.slots.filter((other) => other !== task)
}

/** Ends a task that runs. */
export function settle(
  ledger: Ledger,
  task: ModelTask,
  end: { status: Status; output?: object; error?: string },
): void {
  const owes = !task.isDisowned && (end.status !== 'cancelled' || ledger.notifyCancelled)
  const claim = owes ? task.claims.shift() : undefined
  const delivery = !owes ? 'none' : claim ? 'leased' : 'owed'
  task.record = { ...task.record, ...end, delivery, completedAt: ledger.now, seq: ++ledger.seq }
  if (!task.isLaunched) releaseSlot(ledger, task)
  tell(ledger, task, { kind: 'status', from: 'running', to: end.status })
  if (claim) putIn(claim, task)
  if (owes) tell(ledger, task, { kind: 'delivery', from: 'none', to: delivery }, claim?.id)
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
  tell(ledger, task, { kind: 'delivery', from, to }, deliveryId)
}

function deliver(ledger: Ledger, task: ModelTask, deliveryId?: string): void {
  if (!isOwed(task)) return
  takeOut(task)
  setDelivery(ledger, task, 'delivered', deliveryId)
}

const isDelivering = (ledger: Ledger, owner: string): boolean =>
  [...ledger.leases.values()].some((lease) => lease.exclusiveOwner === owner)

/** Takes what is owed into a lease; undefined when there is nothing, or another exclusive lease of the owner is out. */
export function takeLease(ledger: Ledger, id: string, owner?: string, isExclusive = false): ModelLease | undefined {
  const exclusiveOwner = isExclusive ? owner : undefined
  if (exclusiveOwner !== undefined && isDelivering(ledger, exclusiveOwner)) return undefined
  return leaseThese(ledger, { id, exclusiveOwner, tasks: [] }, pending(ledger, owner))
}

/** A wait takes what is owed of the tasks it awaits, and, before any reminder, what they owe when they end. */
export function takeClaim(ledger: Ledger, id: string, awaited: readonly ModelTask[]): ModelLease | undefined {
  const claimed = awaited.filter(({ record }) => record.status === 'running' || record.delivery === 'leased')
  const owed = awaited.filter(({ record }) => record.delivery === 'owed').sort(bySeq)
  const lease = leaseThese(ledger, { id, exclusiveOwner: undefined, tasks: [] }, owed, claimed.length > 0)
  if (lease) for (const task of claimed) task.claims.push(lease)
  return lease
}

function leaseThese(ledger: Ledger, lease: ModelLease, tasks: ModelTask[], even = false): ModelLease | undefined {
  if (tasks.length === 0 && !even) return undefined
  ledger.leases.set(lease.id, lease)
  for (const task of tasks) {
    putIn(lease, task)
    setDelivery(ledger, task, 'leased', lease.id)
  }
  return lease
}

/** The message was accepted. */
export function acknowledge(ledger: Ledger, lease: ModelLease): void {
  for (const task of lease.tasks) deliver(ledger, task, lease.id)
  endLease(ledger, lease)
}

/** The message was not accepted: what it carried is owed again, or goes to whoever waits for it. */
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
  tell(ledger, task, { kind: 'delivery', from: 'leased', to: 'leased' }, claim.id)
}

function endLease(ledger: Ledger, lease: ModelLease): void {
  ledger.leases.delete(lease.id)
  for (const task of ledger.tasks) task.claims = task.claims.filter((claim) => claim !== lease)
  if (lease.exclusiveOwner !== undefined) ledger.outbox.push({ leaseEndedOf: lease.exclusiveOwner })
}

/** A message whose lease had been returned was accepted after all. */
export function acceptLate(ledger: Ledger, tasks: readonly ModelTask[], deliveryId: string): void {
  for (const task of tasks) {
    if (task.record.delivery === 'owed') deliver(ledger, task, deliveryId)
    else task.isAccepted = true
  }
}

/** The model of the host knows of this task: it owes nothing any more. */
export function notify(ledger: Ledger, id: string): void {
  const task = find(ledger, id)
  if (task) deliver(ledger, task)
}

/** @returns how many tasks it was about */
export function releaseOwner(ledger: Ledger, owner: string, heir: string | undefined): number {
  const all = [running(ledger, owner), pending(ledger, owner), leased(ledger, owner)] as const
  if (heir === owner) return all.flat().length
  for (const task of all.flat()) {
    if (heir !== undefined) {
      task.record = { ...task.record, owner: heir }
      tell(ledger, task, { kind: 'owner', from: owner, to: heir })
    } else if (task.record.delivery === 'owed') setDelivery(ledger, task, 'none')
    else task.isDisowned = true
  }
  return all.flat().length
}

/** Drops the earliest ended records that owe nothing, until the history is within its limit (A7). */
export function prune(ledger: Ledger): void {
  for (;;) {
    const ended = ledger.tasks.filter((task) => task.record.status !== 'running')
    const [oldest] = ended.filter(isDroppable).sort(bySeq)
    if (ended.length <= historyLimit(ledger) || !oldest) return
    ledger.tasks = ledger.tasks.filter((task) => task !== oldest)
    tell(ledger, oldest, { kind: 'history', from: 'retained', to: 'pruned' })
  }
}
