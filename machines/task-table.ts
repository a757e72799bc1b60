/**
 * The registry's memory: every retained task, who is owed what, which slots are taken. It is the ledger that
 * `task-registry.ts` writes, kept apart so that the chart stays a chart. It is changed in place (a copy of it would make
 * every launch slower with the number of tasks), by the registry's actions alone, and every change of a task
 * goes through `#record…`, which numbers it and puts it in the outbox.
 *
 * It is longer than most files because its indexes must change together.
 */
import type { AsyncTaskRef } from './async-task.js'
import { BinaryHeap } from './binary-heap.js'
import type {
  AsyncTaskInfo,
  DeliveryStatus,
  RunningTaskInfo,
  SettledTaskInfo,
  Settlement,
  TaskAdmission,
  TaskQuestion,
  TaskTransition,
} from './records.js'

/** One retained task. Only the registry changes it. */
export interface TaskEntry {
  /** What is known of the task. */
  record: AsyncTaskInfo
  /** The actor, while the task runs. */
  ref: AsyncTaskRef | undefined
  /** Whether it was launched: its slot is then held until its run has ended, which may be later than the task. */
  readonly launched: boolean
  /** Names the slot the task took; unlike the task's id it is never used again. */
  readonly slot: number
  /** The lease that it is in. */
  lease: Lease | undefined
  /** Leases of waits that take the message when it is owed (again), first come first served. */
  claims: Lease[] | undefined
  /** Its owner went away without an heir: its end is owed to nobody. */
  isDisowned: boolean
  /** A message that carried it was accepted after its lease had been returned. */
  isAccepted: boolean
  /** The handlers have been told of the end. */
  isAnnounced: boolean
  /** It waits among those that may be forgotten. */
  isQueuedForPruning: boolean
}

/** Entries that one message carries. */
export interface Lease {
  /** The id of the delivery. */
  readonly id: string
  /** Whose only delivery in flight it is, if it is an exclusive one. */
  readonly exclusiveOwner: string | undefined
  /** What it carries. */
  readonly entries: Set<TaskEntry>
  /** What it takes as soon as it is owed. */
  readonly claimed: Set<TaskEntry>
}

/** Asks for a lease. */
export interface LeaseRequest {
  /** The id of the delivery, which is new. */
  readonly deliveryId: string
  /** Whose entries to take; everyone's when absent. */
  readonly owner?: string
  /** Take these alone. */
  readonly taskIds?: readonly string[]
  /** Refuse while another exclusive lease of the same owner is out. */
  readonly isExclusive?: boolean
  /** Also take the named tasks that run or are on their way, as soon as they are owed. */
  readonly isClaim?: boolean
}

/** What the host has to be told once the registry's transition has ended. */
export type OutboxItem =
  | { readonly type: 'transition'; readonly transition: TaskTransition; readonly entry: TaskEntry }
  /** An exclusive lease has ended: the owner's next delivery may start. */
  | { readonly type: 'lease.ended'; readonly owner: string }
  /** What a task's run waits to be told has changed. */
  | { readonly type: 'questions'; readonly entry: TaskEntry }

interface OwnerAccount {
  readonly running: Set<TaskEntry>
  readonly owed: Set<TaskEntry>
  readonly leased: Set<TaskEntry>
  exclusive: Lease | undefined
}

export interface TaskTableOptions {
  /** How many tasks may run at once; -1 for no limit. */
  readonly max: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cancelled tasks owe a message too. */
  readonly notifyCancelled?: boolean
}

/** Why a task is not admitted. */
export type AdmissionRefusal = 'id-in-use' | 'no-reservation' | 'no-room'

/** How many records with a cut, unread message are kept beyond the history limit. */
const MAX_UNREAD_RECORDS = 100

const isTerminal = (record: AsyncTaskInfo): record is SettledTaskInfo => record.status !== 'running'

const isClaimable = ({ record }: TaskEntry): boolean => record.status === 'running' || record.delivery === 'leased'

// Slots are numbered as they are taken.
const byRegistration = (a: TaskEntry, b: TaskEntry): number => a.slot - b.slot

function nextClaim(entry: TaskEntry): Lease | undefined {
  const claim = entry.claims?.shift()
  if (entry.claims?.length === 0) entry.claims = undefined
  return claim
}

/**
 * The record of a task that has ended. Its fields are written out: an object that grows after it was made, as a copy with more fields
 * does, takes more memory, and an ended record may be kept for long.
 */
function endedRecord(
  record: AsyncTaskInfo,
  end: Settlement,
  {
    delivery,
    seq,
    completedAt,
  }: { readonly delivery: DeliveryStatus; readonly seq: number; readonly completedAt: number },
  notifiedAt?: number,
): SettledTaskInfo {
  const { id, subagentName, goalPrompt, owner, launchedAt, timeoutMs, progress, abortController } = record
  const { status } = end
  let ended: SettledTaskInfo
  if (status === 'cancelled') {
    ended = { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt }
  } else if (status === 'failed') {
    const { error } = end
    ended =
      notifiedAt === undefined
        ? { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, error, completedAt }
        : { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, error, completedAt, notifiedAt }
  } else {
    const { output } = end
    ended =
      notifiedAt === undefined
        ? { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, output, completedAt }
        : { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, output, completedAt, notifiedAt }
  }
  const rare = {
    ...(status === 'cancelled' && notifiedAt !== undefined && { notifiedAt }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(progress !== undefined && { progress }),
    ...(abortController !== undefined && { abortController }),
  }
  return Object.freeze(Object.assign(ended, rare))
}

export class TaskTable {
  max: number
  readonly outbox: OutboxItem[] = []
  readonly #entries = new Map<string, TaskEntry>()
  readonly #accounts = new Map<string, OwnerAccount>()
  readonly #leases = new Map<string, Lease>()
  /** What runs without having been launched: its slot is free when it ends. */
  #registered = 0
  /** The slots of launched runs, which may outlive their tasks. */
  readonly #launched = new Set<number>()
  readonly #reservations = new Map<string, number>()
  readonly #expiries = new BinaryHeap<{ readonly id: string; readonly at: number }>((a, b) => a.at < b.at)
  readonly #prunable = new BinaryHeap<TaskEntry>((a, b) => a.record.seq < b.record.seq)
  /** Ended tasks whose message was cut, and nobody has read the rest. */
  readonly #unread = new Set<TaskEntry>()
  readonly #now: () => number
  readonly #notifyCancelled: boolean
  #terminal = 0
  #seq = 0

  constructor(options: TaskTableOptions) {
    this.max = options.max
    this.#now = options.now
    this.#notifyCancelled = options.notifyCancelled ?? false
  }

  // What is there

  get(id: string): TaskEntry | undefined {
    return this.#entries.get(id)
  }

  /** Every retained task, in the order of their registration. */
  entries(): IterableIterator<TaskEntry> {
    return this.#entries.values()
  }

  /** The number of the latest change. */
  get seq(): number {
    return this.#seq
  }

  /** The terminal records that may be kept (seed 000). */
  get historyLimit(): number {
    return this.max === -1 ? 10 : this.max * 2
  }

  get slotsInUse(): number {
    return this.#registered + this.#launched.size
  }

  get liveReservations(): number {
    this.#dropExpiredReservations()
    return this.#reservations.size
  }

  hasRoom(): boolean {
    return this.max === -1 || this.slotsInUse + this.liveReservations < this.max
  }

  isOverLimit(): boolean {
    return this.max !== -1 && this.slotsInUse + this.liveReservations > this.max
  }

  /** Whether a terminal record could be dropped now. */
  hasExcess(): boolean {
    return this.#terminal > this.historyLimit && this.#prunable.size > 0
  }

  hasReservation(id: string): boolean {
    this.#dropExpiredReservations()
    return this.#reservations.has(id)
  }

  lease(deliveryId: string): Lease | undefined {
    return this.#leases.get(deliveryId)
  }

  /** Whether an exclusive lease of this owner is out. */
  isDelivering(owner: string): boolean {
    return this.#accounts.get(owner)?.exclusive !== undefined
  }

  /** What is owed and not on its way, in the order in which it ended. */
  owed(owner?: string): TaskEntry[] {
    const owed =
      owner === undefined ? [...this.#accounts.values()].flatMap((a) => [...a.owed]) : [...this.#ofOwner(owner, 'owed')]
    return owed.sort((a, b) => a.record.seq - b.record.seq)
  }

  /** What runs, in the order of registration. */
  running(owner?: string): TaskEntry[] {
    const running =
      owner === undefined
        ? [...this.#accounts.values()].flatMap((a) => [...a.running])
        : [...this.#ofOwner(owner, 'running')]
    return running.sort(byRegistration)
  }

  countOf(kind: 'running' | 'owed' | 'leased', owner?: string): number {
    if (owner !== undefined) return this.#accounts.get(owner)?.[kind].size ?? 0
    let count = 0
    for (const account of this.#accounts.values()) count += account[kind].size
    return count
  }

  /** The owners that have at least one such entry, with how many. */
  countsByOwner(kind: 'running' | 'owed' | 'leased'): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [owner, account] of this.#accounts) if (account[kind].size > 0) counts.set(owner, account[kind].size)
    return counts
  }

  /** Why a task would be refused, if it would. */
  admissionRefusal(id: string, reservationId: string | undefined, isLimited: boolean): AdmissionRefusal | undefined {
    if (this.#entries.has(id)) return 'id-in-use'
    if (reservationId !== undefined) return this.hasReservation(reservationId) ? undefined : 'no-reservation'
    return isLimited && !this.hasRoom() ? 'no-room' : undefined
  }

  /** What an inspector shows of it: counts, never contents. */
  toJSON(): Record<string, number> {
    return {
      max: this.max,
      running: this.countOf('running'),
      slots: this.slotsInUse,
      reservations: this.liveReservations,
      owed: this.countOf('owed'),
      leased: this.countOf('leased'),
      retained: this.#entries.size,
      seq: this.#seq,
    }
  }

  // What changes it

  reserve(id: string, ttlMs: number): void {
    this.#dropExpiredReservations()
    const at = this.#now() + ttlMs
    this.#reservations.set(id, at)
    this.#expiries.push({ id, at })
  }

  cancelReservation(id: string): void {
    this.#reservations.delete(id)
  }

  admit(admission: TaskAdmission, ref: AsyncTaskRef, isLaunched: boolean, reservationId: string | undefined): void {
    if (reservationId !== undefined) this.#reservations.delete(reservationId)
    const seq = ++this.#seq
    const record: RunningTaskInfo = Object.freeze({
      id: admission.id,
      subagentName: admission.subagentName,
      goalPrompt: admission.goalPrompt,
      owner: admission.owner,
      status: 'running',
      delivery: 'none',
      launchedAt: this.#now(),
      seq,
      ...(admission.timeoutMs !== undefined && { timeoutMs: admission.timeoutMs }),
      ...(admission.abortController !== undefined && { abortController: admission.abortController }),
    })
    const entry = this.#newEntry(record, ref, isLaunched)
    this.#entries.set(record.id, entry)
    if (!isLaunched) this.#registered += 1
    else if (admission.isForeground !== true) this.#launched.add(entry.slot)
    this.#account(record.owner).running.add(entry)
    this.#recordStatus(entry, null)
  }

  /** Takes back a record from before a restart. A task that ran then has failed; what was on its way is owed again. */
  restore(record: AsyncTaskInfo): void {
    const entry = this.#newEntry(record, undefined, false)
    entry.isAnnounced = true
    this.#seq = Math.max(this.#seq, record.seq)
    this.#entries.set(record.id, entry)
    this.#terminal += 1
    if (record.delivery === 'owed') this.#account(record.owner).owed.add(entry)
    this.#offerForPruning(entry)
  }

  settle(entry: TaskEntry, settlement: Settlement): void {
    if (isTerminal(entry.record)) return
    const { owner } = entry.record
    const seq = ++this.#seq
    const isOwed = !entry.isDisowned && (settlement.status !== 'cancelled' || this.#notifyCancelled)
    const claim = isOwed ? nextClaim(entry) : undefined
    const delivery: DeliveryStatus = !isOwed ? 'none' : claim !== undefined ? 'leased' : 'owed'
    entry.record = endedRecord(entry.record, settlement, { delivery, seq, completedAt: this.#now() })
    entry.ref = undefined
    this.#terminal += 1
    if (!entry.launched) this.#registered -= 1
    const account = this.#account(owner)
    account.running.delete(entry)
    this.#recordStatus(entry, 'running')
    if (claim !== undefined) this.#putInLease(entry, claim)
    else if (isOwed) account.owed.add(entry)
    if (delivery !== 'none') this.#recordDelivery(entry, 'none', claim?.id)
    this.#tidy(owner)
  }

  releaseSlot(slot: number): void {
    this.#launched.delete(slot)
  }

  /** Notes that the handlers have been told of the end of a task. */
  announce(entry: TaskEntry): void {
    entry.isAnnounced = true
    this.#offerForPruning(entry)
  }

  takeLease(request: LeaseRequest): void {
    const owner = request.owner
    if (request.isExclusive === true && owner !== undefined && this.isDelivering(owner)) return
    const named = request.taskIds?.flatMap((id) => this.#entries.get(id) ?? [])
    const entries = named?.filter((e) => e.record.delivery === 'owed') ?? this.owed(owner)
    const claimed = request.isClaim === true ? (named ?? []).filter(isClaimable) : []
    if (entries.length === 0 && claimed.length === 0) return
    const exclusiveOwner = request.isExclusive === true ? owner : undefined
    const lease: Lease = { id: request.deliveryId, exclusiveOwner, entries: new Set(), claimed: new Set(claimed) }
    this.#leases.set(lease.id, lease)
    if (exclusiveOwner !== undefined) this.#account(exclusiveOwner).exclusive = lease
    for (const entry of entries.sort((a, b) => a.record.seq - b.record.seq)) {
      this.#account(entry.record.owner).owed.delete(entry)
      this.#putInLease(entry, lease)
      this.#setDelivery(entry, 'leased', lease.id)
    }
    for (const entry of claimed) (entry.claims ??= []).push(lease)
  }

  acknowledgeLease(deliveryId: string): void {
    const lease = this.#leases.get(deliveryId)
    if (lease === undefined) return
    for (const entry of [...lease.entries]) this.#deliver(entry, deliveryId)
    this.#endLease(lease)
  }

  releaseLease(deliveryId: string): void {
    const lease = this.#leases.get(deliveryId)
    if (lease === undefined) return
    for (const entry of [...lease.entries]) this.#return(entry, lease)
    this.#endLease(lease)
  }

  /** A message whose lease had been returned was accepted after all: what it carried is owed no longer. */
  acceptLate(entries: readonly TaskEntry[], deliveryId: string): void {
    for (const entry of entries) {
      if (entry.record.delivery === 'owed') this.#deliver(entry, deliveryId)
      else entry.isAccepted = true
    }
  }

  /** The host says that its model has been told of these. */
  notify(taskIds: readonly string[]): void {
    for (const id of taskIds) {
      const entry = this.#entries.get(id)
      if (entry !== undefined && isTerminal(entry.record)) this.#deliver(entry, undefined)
    }
  }

  /** Hands what an owner has running, owed and on its way to another owner, or to nobody. */
  releaseOwner(owner: string, heir: string | undefined): void {
    const account = this.#accounts.get(owner)
    if (account === undefined || heir === owner) return
    const running = this.running(owner)
    const owed = this.owed(owner)
    const leased = [...account.leased].sort(byRegistration)
    if (heir === undefined) {
      for (const entry of [...running, ...leased]) entry.isDisowned = true
      for (const entry of owed) {
        account.owed.delete(entry)
        this.#setDelivery(entry, 'none', undefined)
        this.#offerForPruning(entry)
      }
    } else {
      for (const kind of ['running', 'owed', 'leased'] as const) {
        const entries = kind === 'running' ? running : kind === 'owed' ? owed : leased
        for (const entry of entries) {
          account[kind].delete(entry)
          this.#account(heir)[kind].add(entry)
          this.#setOwner(entry, heir)
        }
      }
    }
    this.#tidy(owner)
  }

  /** Keeps records whose message was cut until someone has read the rest, the newest hundred of them. */
  keepUnread(taskIds: readonly string[]): void {
    for (const id of taskIds) {
      const entry = this.#entries.get(id)
      if (entry === undefined || !isTerminal(entry.record)) continue
      this.#unread.add(entry)
    }
    for (const oldest of this.#unread) {
      if (this.#unread.size <= MAX_UNREAD_RECORDS) break
      this.#markRead(oldest)
    }
  }

  noteRead(taskId: string): void {
    const entry = this.#entries.get(taskId)
    if (entry !== undefined && this.#unread.has(entry)) this.#markRead(entry)
  }

  noteProgress(entry: TaskEntry, progress: NonNullable<AsyncTaskInfo['progress']>): void {
    if (entry.record.status === 'running') entry.record = Object.freeze({ ...entry.record, progress })
  }

  /** Notes what the run of a task waits to be told; nothing, when the list is empty. */
  noteQuestions(id: string, questions: readonly TaskQuestion[]): void {
    const entry = this.#entries.get(id)
    if (entry?.record.status !== 'running') return
    const { questions: _, ...fields } = entry.record
    entry.record = Object.freeze(questions.length === 0 ? fields : { ...fields, questions })
    this.outbox.push({ type: 'questions', entry })
  }

  /** Drops the oldest records that owe nothing, until the history is within its limit. */
  prune(): void {
    while (this.hasExcess()) {
      const entry = this.#prunable.pop()
      if (entry === undefined) return
      entry.isQueuedForPruning = false
      // Its text was cut after it had been queued: it is offered again when it was read.
      if (this.#unread.has(entry)) continue
      this.#entries.delete(entry.record.id)
      this.#terminal -= 1
      const { id: taskId, owner } = entry.record
      this.#publish(entry, {
        kind: 'history',
        seq: ++this.#seq,
        taskId,
        owner,
        from: 'retained',
        to: 'pruned',
        at: this.#now(),
        record: entry.record,
      })
    }
  }

  // How it stays consistent

  #newEntry(record: AsyncTaskInfo, ref: AsyncTaskRef | undefined, launched: boolean): TaskEntry {
    return {
      record,
      ref,
      launched,
      slot: record.seq,
      lease: undefined,
      claims: undefined,
      isDisowned: false,
      isAccepted: false,
      isAnnounced: false,
      isQueuedForPruning: false,
    }
  }

  #account(owner: string): OwnerAccount {
    let account = this.#accounts.get(owner)
    if (account === undefined) {
      account = { running: new Set(), owed: new Set(), leased: new Set(), exclusive: undefined }
      this.#accounts.set(owner, account)
    }
    return account
  }

  #ofOwner(owner: string, kind: 'running' | 'owed'): Iterable<TaskEntry> {
    return this.#accounts.get(owner)?.[kind] ?? []
  }

  #tidy(owner: string): void {
    const account = this.#accounts.get(owner)
    if (account === undefined || account.exclusive !== undefined) return
    if (account.running.size + account.owed.size + account.leased.size === 0) this.#accounts.delete(owner)
  }

  #putInLease(entry: TaskEntry, lease: Lease): void {
    entry.lease = lease
    lease.entries.add(entry)
    this.#account(entry.record.owner).leased.add(entry)
  }

  #takeOutOfLease(entry: TaskEntry): void {
    entry.lease?.entries.delete(entry)
    entry.lease = undefined
    this.#account(entry.record.owner).leased.delete(entry)
  }

  #deliver(entry: TaskEntry, deliveryId: string | undefined): void {
    const { delivery, owner } = entry.record
    if (delivery !== 'owed' && delivery !== 'leased') return
    if (delivery === 'leased') this.#takeOutOfLease(entry)
    else this.#account(owner).owed.delete(entry)
    this.#setDelivery(entry, 'delivered', deliveryId)
    this.#offerForPruning(entry)
    this.#tidy(owner)
  }

  #return(entry: TaskEntry, lease: Lease): void {
    if (entry.isAccepted) {
      this.#deliver(entry, lease.id)
      return
    }
    this.#takeOutOfLease(entry)
    const claim = entry.isDisowned ? undefined : nextClaim(entry)
    if (entry.isDisowned) {
      this.#setDelivery(entry, 'none', lease.id)
      this.#offerForPruning(entry)
    } else if (claim !== undefined) {
      this.#putInLease(entry, claim)
      this.#recordDelivery(entry, 'leased', claim.id)
    } else {
      this.#account(entry.record.owner).owed.add(entry)
      this.#setDelivery(entry, 'owed', lease.id)
    }
    this.#tidy(entry.record.owner)
  }

  #endLease(lease: Lease): void {
    this.#leases.delete(lease.id)
    for (const entry of lease.claimed) {
      entry.claims = entry.claims?.filter((claim) => claim !== lease)
      if (entry.claims?.length === 0) entry.claims = undefined
    }
    const owner = lease.exclusiveOwner
    if (owner === undefined) return
    this.#account(owner).exclusive = undefined
    this.#tidy(owner)
    this.outbox.push({ type: 'lease.ended', owner })
  }

  #markRead(entry: TaskEntry): void {
    this.#unread.delete(entry)
    this.#offerForPruning(entry)
  }

  #offerForPruning(entry: TaskEntry): void {
    const { status, delivery } = entry.record
    if (status === 'running' || delivery === 'owed' || delivery === 'leased') return
    if (entry.isQueuedForPruning || !entry.isAnnounced || this.#unread.has(entry)) return
    entry.isQueuedForPruning = true
    this.#prunable.push(entry)
  }

  #dropExpiredReservations(): void {
    if (this.#expiries.size === 0) return
    const now = this.#now()
    for (let next = this.#expiries.peek(); next !== undefined && next.at <= now; next = this.#expiries.peek()) {
      this.#expiries.pop()
      if (this.#reservations.get(next.id) === next.at) this.#reservations.delete(next.id)
    }
  }

  #setDelivery(entry: TaskEntry, delivery: DeliveryStatus, deliveryId: string | undefined): void {
    const from = entry.record.delivery
    const { record } = entry
    entry.record =
      delivery === 'delivered' && isTerminal(record)
        ? endedRecord(record, record, { delivery, seq: record.seq, completedAt: record.completedAt }, this.#now())
        : Object.freeze({ ...record, delivery })
    this.#recordDelivery(entry, from, deliveryId)
  }

  #setOwner(entry: TaskEntry, owner: string): void {
    const from = entry.record.owner
    entry.record = Object.freeze({ ...entry.record, owner })
    const { id: taskId } = entry.record
    this.#publish(entry, {
      kind: 'owner',
      seq: ++this.#seq,
      taskId,
      owner,
      from,
      to: owner,
      at: this.#now(),
      record: entry.record,
    })
  }

  #recordStatus(entry: TaskEntry, from: 'running' | null): void {
    const { record } = entry
    const { id: taskId, owner, seq, status: to } = record
    const at = record.completedAt ?? record.launchedAt
    this.#publish(entry, { kind: 'status', seq, taskId, owner, from, to, at, record })
  }

  #recordDelivery(entry: TaskEntry, from: DeliveryStatus, deliveryId: string | undefined): void {
    const { id: taskId, owner, delivery: to } = entry.record
    this.#publish(entry, {
      kind: 'delivery',
      seq: ++this.#seq,
      taskId,
      owner,
      from,
      to,
      at: this.#now(),
      record: entry.record,
      ...(deliveryId !== undefined && { deliveryId }),
    })
  }

  #publish(entry: TaskEntry, transition: TaskTransition): void {
    this.outbox.push({ type: 'transition', transition: Object.freeze(transition), entry })
  }
}
