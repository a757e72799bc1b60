/**
 * A model of the task manager: the rules of the registry in their simplest form. It is a list of tasks that every query searches completely, without
 * actors, indexes or callbacks. The commands of `manager-commands.ts` compare a manager with it.
 *
 * Time-related rules (deadlines, back-offs, wait limits, wrap-up times) are in the code that uses the model: `test/model/modelled-host.ts`.
 *
 * The file is long so that all rules of the ledger are in one place.
 */

import { type AsyncTaskStatus, hasEnded, holdsSlot, isWaiting, wasStopped } from '../../machines/task-status.js'
import { omitUndefined } from '../data/omit-undefined.js'

export type Status = AsyncTaskStatus
/** The state of a task's result in the ledger. */
export type Delivery = 'none' | 'owed' | 'leased' | 'delivered'

/** The fields of a record. Times are in ms since the epoch. */
export interface ModelRecord {
  id: string
  subagentName: string
  goalPrompt: string
  /** The agent, session or run that receives the result. */
  owner: string
  status: Status
  /** The state of its result. */
  delivery: Delivery
  launchedAt: number
  /** The number of the last change of its status. */
  seq: number
  completedAt?: number
  notifiedAt?: number
  output?: object
  error?: string
  cancelReason?: string
  /** The task whose run launched it. */
  parentId?: string
  depth?: number
  /** The child tasks that were still active when this task ended. */
  runningChildren?: readonly string[]
  /** What the run returned after the deadline of the task. */
  lateOutput?: object
  errorName?: string
  errorCode?: string
  /** The end of its output, if the task was cancelled or exceeded its deadline. */
  outputTail?: string
  /** How long after the launch the task has its deadline, in ms. */
  timeoutMs?: number
  progress?: object
  abortController?: string
  /** When the current run started, if the task had to wait before it. */
  startedAt?: number
  /** The number of the current run; absent for the first run. */
  attempt?: number
  /** The earlier runs, which failed. */
  attempts?: readonly ModelAttempt[]
  /** How many steps its runs may take, and how long a run may wrap up after that, in ms. */
  budget?: { readonly steps: number; readonly wrapUpMs: number }
  spent?: { readonly steps: number }
  /** The open questions of its run, in the order in which they were asked. */
  questions?: readonly { readonly id: string }[]
  messagesSent?: number
  /** Present while the caller of the task waits for it. */
  isForeground?: true
  /** The ids of the tasks that had to end before this task could start. */
  after?: readonly string[]
  /** The ids in `after` of tasks that have not ended. Present while the task waits for them. */
  waitsFor?: readonly string[]
  /** The concurrency key. Tasks with the same key run one at a time, or as many as the ledger's `keyLimits` allow. */
  concurrencyKey?: string
}

/** A failed run, after which the task ran again. */
export interface ModelAttempt {
  readonly number: number
  readonly startedAt: number
  readonly endedAt: number
  readonly error: string
}

/** The kind of slots that a task takes: the slots that `max` limits, those for child tasks of its depth, or none. */
export type ModelPool = 'task' | `child ${number}` | 'none'

/** A task of the model: its record, and state that the record does not show. */
export interface ModelTask {
  /** The record. Each change replaces it, so that a returned record never changes. */
  record: Readonly<ModelRecord>
  /** Whether the task was launched. It keeps its slot until its run has ended, which may be after the end of the task. */
  readonly isLaunched: boolean
  /** Which kind of slots the task takes. */
  pool: ModelPool
  /** Whether the task holds one of the slots that `max` limits. */
  hasSlot: boolean
  /** The priority of the task. Waiting tasks with the highest priority start first. */
  readonly priority: number
  /** Since when its priority rises (`launch`), and since when the task waits only for slots (`slots`). Both move when the clock is set. */
  since: { launch: number; slots: number }
  /** Whether the task waits for the back-off before its next run. */
  isDelayed: boolean
  /** Whether the task waits for other tasks to end. */
  isHeld: boolean
  isPaused: boolean
  /** The tasks that this task waits for. Their records are kept meanwhile. */
  needs: readonly ModelTask[]
  /** The lease that holds its result. */
  lease: ModelLease | undefined
  /** The leases of callers that wait for this task. They receive its result before any reminder. */
  claims: ModelLease[]
  /** Whether the owner was released and nobody inherits the task, so that no result will be owed. */
  isDisowned: boolean
  /** Whether a message with the task's result was accepted after the lease of that message was released. */
  isAccepted: boolean
  /** Whether the handlers for the end of the task have run. */
  isHandled: boolean
  /** Whether a message contained only a part of the task's result, and the rest was not read. */
  isUnread: boolean
  /** While the record may be pruned: the owner for whom it counts. */
  droppableFor: string | undefined
}

/** A lease: the results of one message or wait. */
export interface ModelLease {
  id: string
  /** The owner, if the lease is exclusive. An owner has at most one exclusive lease. */
  exclusiveOwner: string | undefined
  tasks: ModelTask[]
  /** The questions that its message asks. */
  questions: readonly ModelQuestion[]
}

export interface ModelQuestion {
  readonly task: ModelTask
  readonly id: string
  owner: string
  /** The state of the question's delivery. */
  delivery: Delivery
  /** Whether a message with the question was accepted after the lease of that message was released. */
  isAccepted: boolean
}

export interface ModelTransition {
  kind: 'status' | 'delivery' | 'owner' | 'history'
  /** The number of the change among all changes, counted from 1. */
  seq: number
  taskId: string
  owner: string
  /** The state before; null for a new task. */
  from: string | null
  /** The state after. */
  to: string
  /** When the change happened, in ms since the epoch. */
  at: number
  /** The task's record after the change. */
  record: Readonly<ModelRecord>
  /** The id of the lease, for a change of the delivery. */
  deliveryId?: string
}

/** What the manager still has to emit: a change of a task or its questions, or the end of an exclusive lease. */
export type OutboxItem =
  { transition: ModelTransition; task: ModelTask } | { questionsOf: ModelTask } | { leaseEndedOf: string }

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
  /** The tasks that hold a slot. A cancelled launch may hold its slot longer than its record is kept. */
  slots: ModelTask[]
  /** When each reservation expires, in ms since the epoch, by its id. */
  readonly reservations: Map<string, number>
  readonly leases: Map<string, ModelLease>
  /** The open questions, in the order in which they were asked. */
  questions: ModelQuestion[]
  /** How long a task waits until its priority has risen by one, in ms; -1 for never. */
  agingMs: number
  /** How many tasks with the same concurrency key may run, by key. The limit of any other key is 1. */
  keyLimits: Readonly<Record<string, number>>
  keyed: ModelTask[]
  /** The tasks that wait for other tasks. A task stays here until it has started or ended. */
  waiting: ModelTask[]
  /** What the manager has yet to emit, in order. */
  readonly outbox: OutboxItem[]
}

/**
 * Makes a ledger without tasks.
 * @param max how many tasks may run at once; -1 for no limit
 * @param notifyCancelled whether the result of a cancelled task is owed
 * @param now the time, in ms since the epoch
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
    questions: [],
    agingMs: 60_000,
    keyLimits: {},
    keyed: [],
    waiting: [],
    outbox: [],
  }
}

/** Makes a task in the state `running`. `admit` registers it. */
export function newTask(
  fields: Omit<ModelRecord, 'status' | 'delivery' | 'seq'>,
  { isLaunched = false, priority = 0 }: { readonly isLaunched?: boolean; readonly priority?: number } = {},
): ModelTask {
  return {
    record: { ...fields, status: 'running', delivery: 'none', seq: 0 },
    isLaunched,
    priority,
    since: { launch: fields.launchedAt, slots: fields.launchedAt },
    pool: 'task',
    isDelayed: false,
    isHeld: false,
    isPaused: false,
    needs: [],
    hasSlot: false,
    lease: undefined,
    claims: [],
    isDisowned: false,
    isAccepted: false,
    isHandled: false,
    isUnread: false,
    droppableFor: undefined,
  }
}

// Queries

export const find = (ledger: Ledger, id: string): ModelTask | undefined =>
  ledger.tasks.find((task) => task.record.id === id)

const isOf = (owner: string | undefined) => (task: ModelTask) => owner === undefined || task.record.owner === owner

const bySeq = (a: ModelTask, b: ModelTask): number => a.record.seq - b.record.seq

/** The running tasks of an owner, or of all owners, in the order of registration. */
export const running = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => holdsSlot(task.record.status)).filter(isOf(owner))

export const isActive = ({ record }: ModelTask): boolean => !hasEnded(record.status)

/** The tasks that wait for a slot, or for their next run, in the order of registration. */
export const queued = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks.filter((task) => isWaiting(task.record.status)).filter(isOf(owner))

/** The tasks that wait for slots of one kind, in order: by priority, which rises while they wait, then by registration (promise F8). */
export const queueOf = (ledger: Ledger, pool: ModelPool): ModelTask[] =>
  inOrder(
    ledger,
    queued(ledger).filter((task) => task.pool === pool),
  )

const inOrder = (ledger: Ledger, tasks: readonly ModelTask[]): ModelTask[] =>
  [...tasks].sort((a, b) => rankOf(ledger, b) - rankOf(ledger, a))

const rankOf = ({ agingMs, now }: Ledger, { priority, since }: ModelTask): number =>
  agingMs === -1 ? priority : priority + (now - since.launch) / agingMs

const isReady = ({ isDelayed, isHeld, isPaused }: ModelTask): boolean => !isDelayed && !isHeld && !isPaused

/** Whether a task may take its concurrency key, apart from reservations (promise F18). */
export const isKeyFree = ({ keyed, keyLimits }: Ledger, { record: { concurrencyKey: key } }: ModelTask): boolean =>
  key === undefined || keyed.filter(({ record }) => record.concurrencyKey === key).length < (keyLimits[key] ?? 1)

/** The tasks that wait only for a slot and their concurrency key, in order. */
export const keyedQueue = (ledger: Ledger): ModelTask[] =>
  inOrder(
    ledger,
    queued(ledger).filter((task) => task.record.concurrencyKey !== undefined && isReady(task)),
  )

/**
 * Returns the first task with a concurrency key that may start. If there is none, returns the reserved key: the first task that has waited for ten
 * ageing periods reserves its key, so that no later task takes it.
 */
export function lookAtKeyed(ledger: Ledger): { next?: ModelTask; reserved?: string } {
  let reserved: string | undefined
  for (const task of keyedQueue(ledger)) {
    const key = task.record.concurrencyKey
    if (key !== reserved && isKeyFree(ledger, task) && (task.pool !== 'task' || hasRoom(ledger))) return { next: task }
    const isOld = ledger.agingMs !== -1 && ledger.now - task.since.slots >= 10 * ledger.agingMs
    if (isOld) reserved ??= key
  }
  return omitUndefined({ reserved })
}

/** The tasks whose results are owed and not leased, in the order in which they ended. */
export const owed = (ledger: Ledger, owner?: string): ModelTask[] =>
  ledger.tasks
    .filter((task) => task.record.delivery === 'owed')
    .filter(isOf(owner))
    .sort(bySeq)

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

/** Whether the record of a task may be pruned: the task has ended, its handlers have run, nothing is owed or unread, and no waiting task names it. */
const isDroppable = (ledger: Ledger, task: ModelTask): boolean =>
  !isActive(task) &&
  task.isHandled &&
  !isOwed(task) &&
  !task.isUnread &&
  !ledger.waiting.some(({ needs }) => needs.includes(task))

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
    ...omitUndefined({ deliveryId }),
  }
  ledger.outbox.push({ transition, task })
}

export const ownerOfRun = (taskId: string): string => `run:${taskId}`

/** The active tasks that the run of a task has launched and owns. */
export const childrenOf = (ledger: Ledger, { record }: ModelTask): ModelTask[] =>
  ledger.tasks.filter(isActive).filter(isOf(ownerOfRun(record.id)))

/** Registers a task, with a reservation or without. A foreground task takes no slot. A child task takes no slot that `max` limits. */
export function admit(
  ledger: Ledger,
  task: ModelTask,
  isForeground: boolean,
  reservationId: string | undefined,
  status: 'running' | 'queued' = 'running',
): void {
  if (reservationId !== undefined) ledger.reservations.delete(reservationId)
  task.record = { ...task.record, status, seq: ++ledger.seq, ...(isForeground && { isForeground }) }
  ledger.tasks.push(task)
  task.pool = isForeground ? 'none' : backgroundPool(task)
  if (holdsSlot(status)) takeSlot(ledger, task)
  emit(ledger, task, { kind: 'status', from: null, to: status })
}

const backgroundPool = ({ record: { parentId, depth = 1 } }: ModelTask): ModelPool =>
  parentId === undefined ? 'task' : `child ${depth}`

/** Moves a task to the background. Returns false if no slot is free. */
export function detach(ledger: Ledger, task: ModelTask): boolean {
  const pool = backgroundPool(task)
  const isRunning = holdsSlot(task.record.status)
  if (isRunning && pool === 'task' && !hasRoom(ledger)) return false
  const { isForeground: _, ...record } = task.record
  task.record = record
  task.pool = pool
  if (isRunning) takeSlot(ledger, task)
  return true
}

function takeSlot(ledger: Ledger, task: ModelTask): void {
  if (task.record.concurrencyKey !== undefined && !ledger.keyed.includes(task)) ledger.keyed.push(task)
  task.hasSlot = task.pool === 'task'
  if (task.hasSlot) ledger.slots.push(task)
}

/**
 * Gives each free slot to the next task (promise F8).
 * @returns the tasks whose runs start now
 */
export function startNext(ledger: Ledger): ModelTask[] {
  const depths = new Set(queued(ledger).map(({ record: { depth = 1 } }) => depth))
  const children = Array.from(depths, (depth) => `child ${depth}` as const).sort()
  const { next: keyed } = lookAtKeyed(ledger)
  const pools = ['task', ...children, 'none'] as const
  const plain = pools.flatMap((pool) => {
    const first = queueOf(ledger, pool).find((task) => isReady(task) && task.record.concurrencyKey === undefined)
    if (first === undefined || (pool === 'task' && !hasRoom(ledger))) return []
    const both = ledger.tasks.filter((task) => task === first || task === keyed)
    return keyed?.pool === pool && inOrder(ledger, both)[0] === keyed ? [] : [first]
  })
  const next = plain[0] ?? keyed
  if (next === undefined) return []
  takeSlot(ledger, next)
  next.record = { ...next.record, status: 'running', seq: ++ledger.seq, startedAt: ledger.now }
  emit(ledger, next, { kind: 'status', from: 'queued', to: 'running' })
  return [next, ...startNext(ledger)]
}

/**
 * Queues a task whose run has failed and will be retried (promise F9). The task waits without a slot, and keeps its place among the waiting tasks. The
 * tasks that the run launched pass to the owner of the task.
 */
export function requeue(ledger: Ledger, task: ModelTask, error: string): void {
  releaseSlot(ledger, task)
  releaseOwner(ledger, ownerOfRun(task.record.id), task.isDisowned ? undefined : task.record.owner)
  const from = task.record.status
  const { questions: _, progress: _progress, startedAt, attempt = 1, attempts = [], ...fields } = task.record
  const failed = { number: attempt, startedAt: startedAt ?? fields.launchedAt, endedAt: ledger.now, error }
  task.record = {
    ...fields,
    status: 'queued',
    seq: ++ledger.seq,
    attempt: attempt + 1,
    attempts: [...attempts, failed],
  }
  closeQuestions(ledger, task)
  emit(ledger, task, { kind: 'status', from, to: 'queued' })
}

export function releaseSlot(ledger: Ledger, task: ModelTask): void {
  task.hasSlot = false
  ledger.slots = ledger.slots.filter((other) => other !== task)
  ledger.keyed = ledger.keyed.filter((other) => other !== task)
}

/** Ends a task that runs or waits. The tasks that its run launched pass to the owner of the task. */
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
  const from = task.record.status
  const owes = !task.isDisowned && (!wasStopped(end.status) || ledger.notifyCancelled)
  const claim = owes ? task.claims.shift() : undefined
  const delivery = !owes ? 'none' : claim ? 'leased' : 'owed'
  const children = wasStopped(end.status) ? [] : childrenOf(ledger, task).map(({ record }) => record.id)
  const named = children.length > 0 && { runningChildren: children }
  const { questions: _, isForeground: _place, waitsFor: _waits, abortController: _abort, ...fields } = task.record
  task.record = { ...fields, ...end, ...named, delivery, completedAt: ledger.now, seq: ++ledger.seq }
  closeQuestions(ledger, task)
  if (!task.isLaunched) releaseSlot(ledger, task)
  emit(ledger, task, { kind: 'status', from, to: end.status })
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

/** Leases the results that are owed. Returns undefined when nothing is owed, or when the owner has another exclusive lease. */
export function takeLease(
  ledger: Ledger,
  id: string,
  owner?: string,
  isExclusive = false,
  questions: readonly ModelQuestion[] = [],
): ModelLease | undefined {
  const exclusiveOwner = isExclusive ? owner : undefined
  if (exclusiveOwner !== undefined && isDelivering(ledger, exclusiveOwner)) return undefined
  for (const question of questions) question.delivery = 'leased'
  return lease(ledger, { id, exclusiveOwner, tasks: [], questions }, owed(ledger, owner), questions.length > 0)
}

/** Leases the results of these tasks for a caller that waits for them. A result that becomes owed later goes to the caller before any reminder. */
export function takeClaim(ledger: Ledger, id: string, awaited: readonly ModelTask[]): ModelLease | undefined {
  const claimed = awaited.filter((task) => isActive(task) || task.record.delivery === 'leased')
  const ended = awaited.filter(({ record }) => record.delivery === 'owed').sort(bySeq)
  const claim = lease(ledger, { id, exclusiveOwner: undefined, tasks: [], questions: [] }, ended, claimed.length > 0)
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
  for (const question of lease.questions) if (question.delivery === 'leased') question.delivery = 'delivered'
  endLease(ledger, lease)
}

/** Ends a lease whose message was not accepted. A result goes to a caller that waits for it, or is owed again. */
export function release(ledger: Ledger, lease: ModelLease): void {
  for (const task of lease.tasks) giveBack(ledger, task, lease)
  for (const question of lease.questions) {
    if (question.delivery === 'leased') question.delivery = question.isAccepted ? 'delivered' : 'owed'
  }
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

/** Handles a message that was accepted after its lease was released: its results and questions count as delivered. */
export function acceptLate(
  ledger: Ledger,
  tasks: readonly ModelTask[],
  deliveryId: string,
  questions: readonly ModelQuestion[] = [],
): void {
  for (const question of questions) {
    if (question.delivery === 'owed') question.delivery = 'delivered'
    question.isAccepted = true
  }
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

/** The questions that an owner has not received yet. */
export const owedQuestions = (ledger: Ledger, owner?: string): ModelQuestion[] =>
  ledger.questions.filter(
    (question) => question.delivery === 'owed' && (owner === undefined || question.owner === owner),
  )

/**
 * Adds a question that a run asks. The question is owed to the owner of the task. If that owner is a run, the question is owed to the owner of that
 * run's task, and so on (promise F6).
 */
export function ask(
  ledger: Ledger,
  task: ModelTask,
  question: { readonly id: string; readonly [field: string]: unknown },
): void {
  setQuestions(ledger, task, [...(task.record.questions ?? []), question])
  const owner = addresseeOf(ledger, task.record.owner)
  ledger.questions.push({ task, id: question.id, owner, delivery: 'owed', isAccepted: false })
}

function addresseeOf(ledger: Ledger, owner: string): string {
  const above = owner.startsWith('run:') ? find(ledger, owner.slice('run:'.length)) : undefined
  return above === undefined ? owner : addresseeOf(ledger, above.record.owner)
}

/** Closes a question that was answered or withdrawn. Later messages do not contain it. */
export function closeQuestion(ledger: Ledger, task: ModelTask, id: string): void {
  const open = (task.record.questions ?? []).filter((question) => question.id !== id)
  setQuestions(ledger, task, open)
  ledger.questions = ledger.questions.filter((question) => question.task !== task || question.id !== id)
}

export function withdrawQuestions(ledger: Ledger, task: ModelTask): void {
  if (task.record.questions === undefined) return
  setQuestions(ledger, task, [])
  closeQuestions(ledger, task)
}

function setQuestions(ledger: Ledger, task: ModelTask, questions: readonly { readonly id: string }[]): void {
  const { questions: _, ...fields } = task.record
  task.record = questions.length === 0 ? fields : { ...fields, questions }
  ledger.outbox.push({ questionsOf: task })
}

function closeQuestions(ledger: Ledger, task: ModelTask): void {
  ledger.questions = ledger.questions.filter((question) => question.task !== task)
}

/**
 * Transfers the tasks of an owner to an heir. Without an heir, nobody receives their results.
 * @returns how many tasks the owner had
 */
export function releaseOwner(ledger: Ledger, owner: string, heir: string | undefined): number {
  const all = [queued(ledger, owner), running(ledger, owner), owed(ledger, owner), leased(ledger, owner)] as const
  if (heir === owner) return all.flat().length
  for (const question of ledger.questions) {
    if (question.owner !== owner) continue
    if (heir === undefined) question.delivery = 'none'
    else question.owner = heir
  }
  for (const task of all.flat()) {
    if (heir !== undefined) {
      task.record = { ...task.record, owner: heir }
      emit(ledger, task, { kind: 'owner', from: owner, to: heir })
    } else if (task.record.delivery === 'owed') setDelivery(ledger, task, 'none')
    else task.isDisowned = true
  }
  if (heir === undefined && !owner.startsWith('run:')) {
    for (const task of ledger.tasks) {
      task.droppableFor = droppableFor(ledger, task)
      if (task.droppableFor === owner) task.droppableFor = RELEASED
    }
  }
  return all.flat().length
}

/** All owners that were released share the room of one owner for their records. */
const RELEASED = ''

/** The owner for whom a record counts that may be pruned; undefined for one that may not. */
function droppableFor(ledger: Ledger, task: ModelTask): string | undefined {
  if (!isDroppable(ledger, task)) return undefined
  return task.droppableFor ?? (task.isDisowned ? RELEASED : payerOf(ledger, task))
}

/** Transfers those of the tasks of an owner to an heir that are active, owed or leased, and the open questions of these tasks. */
export function transfer(ledger: Ledger, owner: string, heir: string, ids: ReadonlySet<string>): void {
  if (heir === owner) return
  const isMeant = (task: ModelTask): boolean => ids.has(task.record.id)
  for (const question of ledger.questions) {
    if (question.owner === owner && isMeant(question.task)) question.owner = heir
  }
  const bySerial = (a: ModelTask, b: ModelTask): number => ledger.tasks.indexOf(a) - ledger.tasks.indexOf(b)
  for (const tasks of [queued(ledger, owner), running(ledger, owner), owed(ledger, owner), leased(ledger, owner)]) {
    for (const task of tasks.filter(isMeant).sort(bySerial)) {
      task.record = { ...task.record, owner: heir }
      emit(ledger, task, { kind: 'owner', from: owner, to: heir })
    }
  }
}

/** Returns the owner of a task or, if that is a run, the owner of the run. */
export function payerOf(ledger: Ledger, { record: { owner } }: ModelTask): string {
  const above = owner.startsWith('run:') ? find(ledger, owner.slice(4)) : undefined
  return above === undefined ? owner : payerOf(ledger, above)
}

/**
 * Prunes records that may be pruned, of each owner the earliest ended first, until at most the history limit of them is left for the owner. Records
 * that may not be pruned do not count.
 */
export function prune(ledger: Ledger): void {
  for (const task of ledger.tasks) task.droppableFor = droppableFor(ledger, task)
  const droppable = ledger.tasks.filter((task) => task.droppableFor !== undefined).sort(bySeq)
  const excess = droppable.filter((task) => {
    const later = droppable.filter((other) => other.droppableFor === task.droppableFor && bySeq(task, other) < 0)
    return later.length >= historyLimit(ledger)
  })
  for (const oldest of excess) {
    ledger.tasks = ledger.tasks.filter((task) => task !== oldest)
    emit(ledger, oldest, { kind: 'history', from: 'retained', to: 'pruned' })
  }
}
