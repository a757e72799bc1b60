/**
 * The ledger: what is owed to each owner, and which message carries it (`owed -> leased -> delivered`, promises A5, A6). The ledger handles the
 * entries of tasks. An entry is in at most one lease, and an owner has at most one exclusive lease (R4).
 */
import type { Journal } from './journal.js'
import { OwedQuestions, type QuestionRef } from './owed-questions.js'
import type { ActiveTaskInfo, DeliveryStatus, Settlement } from './records.js'
import {
  byEnd,
  byRegistration,
  endedLease,
  isOutstanding,
  isTerminal,
  type Lease,
  type OwedQuestion,
  type TaskEntry,
} from './task-entry.js'
import { changedRecord, deliveredRecord, endedRecord } from './task-record.js'
import { accountOf, hasEnded, type ActiveStatus } from './task-status.js'

export interface LeaseRequest {
  /** The id of the delivery. No other delivery may have it. */
  readonly deliveryId: string
  /** Takes only entries of this owner. Default: of all owners. */
  readonly owner?: string
  /** Takes only the entries of these tasks. */
  readonly taskIds?: readonly string[]
  /** Refuses the lease while another exclusive lease of the same owner is open. */
  readonly isExclusive?: boolean
  /** Also claims those of the tasks that are active or leased: the lease takes them when their results become owed. */
  readonly isClaim?: boolean
  /** Also takes those of these questions that are owed. */
  readonly questions?: readonly QuestionRef[]
}

export type AccountPart = ReturnType<typeof accountOf> | 'owed' | 'leased'

interface OwnerAccount extends Record<AccountPart, Set<TaskEntry> | undefined> {
  exclusive: Lease | undefined
}

/** What the ledger needs from the registry. */
export interface LedgerOptions {
  readonly journal: Journal
  /** Whether the owner also receives a message about a cancelled task. */
  readonly notifyCancelled: boolean
  readonly find: (id: string) => TaskEntry | undefined
  /** Called when the result of an ended task is no longer owed. */
  readonly onCleared: (entry: TaskEntry) => void
  /** Called when the delivered result of a task is owed again. */
  readonly onRepeated?: (entry: TaskEntry) => void
  /** Returns the owner that receives the questions of a task. Default: the owner of the task. */
  readonly addresseeOf?: (entry: TaskEntry) => string
  /** Returns the end of a task's output for its record, if the record must contain it. */
  readonly tailOf?: (entry: TaskEntry, settlement: Settlement) => string | undefined
  /** Notified of the messages that carry results. Only set with a store. */
  readonly deliveries?: DeliveryObserver
}

/** Observes the messages that carry results and questions. */
export interface DeliveryObserver {
  onCarried(deliveryId: string, entry: TaskEntry, question?: OwedQuestion): void
  /** The delivery state of a task's questions has changed. */
  onAsked(entry: TaskEntry): void
  /** A message was accepted. `carried` has the entries in it; undefined for all entries of the lease. */
  onAccepted(deliveryId: string, carried?: ReadonlySet<TaskEntry>): void
  /** A message was not accepted. */
  onReleased(deliveryId: string): void
  /** The host itself has delivered the result of a task, without a lease. */
  onMarked(entry: TaskEntry): void
}

/** Keeps an account of what is owed to each owner, and the open leases. */
export class Ledger {
  /** The open questions of all tasks. Only the registry and the ledger change them. */
  readonly questions: OwedQuestions
  readonly #options: LedgerOptions
  readonly #accounts = new Map<string, OwnerAccount>()
  readonly #leases = new Map<string, Lease>()
  readonly #totals: Record<AccountPart, number> = { queued: 0, running: 0, owed: 0, leased: 0 }
  /** An empty account that the next owner reuses. That saves memory, because accounts are often opened and closed in turn. */
  #spare: OwnerAccount | undefined

  constructor(options: LedgerOptions) {
    this.#options = options
    this.questions = new OwedQuestions({
      addresseeOf: options.addresseeOf ?? (({ record }) => record.owner),
      onOwed: (owner) => options.journal.questionOwed(owner),
      onChanged: (entry) => options.deliveries?.onAsked(entry),
    })
  }

  lease(deliveryId: string): Lease | undefined {
    return this.#leases.get(deliveryId)
  }

  /** Whether an exclusive lease of this owner is open. */
  isDelivering(owner: string): boolean {
    return this.#accounts.get(owner)?.exclusive !== undefined
  }

  /** Whether a result or a question of this owner is owed and in no message. */
  isOwing(owner: string): boolean {
    return this.countOf('owed', owner) > 0 || this.questions.owed(owner).length > 0
  }

  /** Returns the entries whose results are owed and in no message, in the order in which the tasks ended. */
  owed(owner?: string): TaskEntry[] {
    return this.#entries('owed', owner).sort(byEnd)
  }

  /** Returns the running tasks, in the order of registration. */
  running(owner?: string): TaskEntry[] {
    return this.#entries('running', owner).sort(byRegistration)
  }

  /** Returns the queued tasks, in the order of registration. */
  queued(owner?: string): TaskEntry[] {
    return this.#entries('queued', owner).sort(byRegistration)
  }

  /** Returns the active tasks, in the order of registration. */
  active(owner?: string): TaskEntry[] {
    return [...this.#entries('queued', owner), ...this.#entries('running', owner)].sort(byRegistration)
  }

  countOf(part: AccountPart, owner?: string): number {
    return owner === undefined ? this.#totals[part] : (this.#accounts.get(owner)?.[part]?.size ?? 0)
  }

  /** Returns how many tasks of the owner are active, owed or leased. Without an owner, counts all tasks. */
  outstanding(owner?: string): number {
    return PARTS.reduce((sum, part) => sum + this.countOf(part, owner), 0)
  }

  /** Counts, for each owner, the entries in one part of its account, such as `owed`. */
  countsByOwner(part: AccountPart): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [owner, account] of this.#accounts) {
      const count = account[part]?.size ?? 0
      if (count > 0) counts.set(owner, count)
    }
    return counts
  }

  /** Adds a task that was registered or restored. */
  add(entry: TaskEntry): void {
    const { status, delivery } = entry.record
    if (!hasEnded(status)) this.#add(entry, accountOf(status))
    else if (delivery === 'owed') this.#add(entry, 'owed')
    else this.#options.onCleared(entry)
  }

  /** Moves a task that has started, or that waits for its next run, to the part of the account for the status in the new record. */
  move(entry: TaskEntry, record: ActiveTaskInfo, at: number): void {
    const from = entry.record.status as ActiveStatus
    this.#remove(entry, accountOf(from))
    entry.record = record
    this.#add(entry, accountOf(record.status))
    this.questions.update(entry)
    this.#options.journal.status(entry, from, at)
  }

  /** Ends a task: replaces its record, and adds its result to what is owed. `children` are those tasks of its run that are still active. */
  end(entry: TaskEntry, settlement: Settlement, children: readonly TaskEntry[] = []): void {
    const { journal, notifyCancelled, tailOf } = this.#options
    const outputTail = tailOf?.(entry, settlement)
    const from = entry.record.status as ActiveStatus
    const seq = journal.next()
    const isOwed = !entry.isDisowned && (settlement.status !== 'cancelled' || notifyCancelled)
    const claim = isOwed ? nextClaim(entry) : undefined
    const delivery: DeliveryStatus = !isOwed ? 'none' : claim === undefined ? 'owed' : 'leased'
    const runningChildren = children.length === 0 ? undefined : Object.freeze(children.map(({ record }) => record.id))
    entry.record = endedRecord(entry.record, settlement, {
      delivery,
      seq,
      completedAt: journal.now(),
      outputTail,
      runningChildren,
    })
    this.#remove(entry, accountOf(from))
    this.questions.update(entry)
    journal.status(entry, from)
    if (claim !== undefined) this.#putInLease(entry, claim)
    else if (isOwed) this.#add(entry, 'owed')
    if (delivery !== 'none') journal.delivery(entry, 'none', claim?.id)
    this.#closeIfEmpty(entry.record.owner)
  }

  /** Opens a lease. Returns undefined if there is nothing to take, or if an exclusive lease of the owner is open. */
  take(request: LeaseRequest): Lease | undefined {
    const { deliveryId, owner, taskIds, isExclusive = false, isClaim = false } = request
    const exclusiveOwner = isExclusive ? owner : undefined
    if (exclusiveOwner !== undefined && this.isDelivering(exclusiveOwner)) return undefined
    const isOfOwner = ({ record }: TaskEntry): boolean => owner === undefined || record.owner === owner
    const named = taskIds?.flatMap((id) => this.#options.find(id) ?? []).filter(isOfOwner)
    const entries = named?.filter(({ record }) => record.delivery === 'owed').sort(byEnd) ?? this.owed(owner)
    const claimed = isClaim ? (named ?? []).filter(isClaimable) : []
    const questions = this.questions.take(request.questions ?? [], deliveryId, owner)
    if (entries.length === 0 && claimed.length === 0 && questions.length === 0) return undefined
    const lease: Lease = {
      id: deliveryId,
      exclusiveOwner,
      entries: new Set(),
      claimed: new Set(claimed),
      ...(questions.length > 0 && { questions }),
    }
    this.#leases.set(deliveryId, lease)
    if (exclusiveOwner !== undefined) this.#account(exclusiveOwner).exclusive = lease
    for (const entry of entries) {
      this.#remove(entry, 'owed')
      this.#putInLease(entry, lease)
      this.#setDelivery(entry, 'leased', deliveryId)
    }
    for (const question of questions) this.#options.deliveries?.onCarried(deliveryId, question.entry, question)
    for (const entry of claimed) (entry.claims ??= new Set()).add(lease)
    return lease
  }

  /** Accepts a message: the results in it are delivered. If the lease has entries that the message did not carry, they are owed again. */
  acknowledge(deliveryId: string, carried?: ReadonlySet<TaskEntry>): void {
    const lease = this.#leases.get(deliveryId)
    if (lease === undefined) return
    this.#options.deliveries?.onAccepted(deliveryId, carried)
    for (const entry of [...lease.entries]) {
      if (carried?.has(entry) === false) this.#return(entry, lease)
      else this.#deliver(entry, deliveryId)
    }
    this.questions.deliver(lease.questions ?? [])
    this.#close(lease)
  }

  /** Ends the lease of a message that was not accepted: its results are owed again. With `isUncertain` they are marked as possible repeats. */
  release(deliveryId: string, isUncertain = false): void {
    const lease = this.#leases.get(deliveryId)
    if (lease === undefined) return
    this.#options.deliveries?.onReleased(deliveryId)
    for (const entry of [...lease.entries]) {
      if (isUncertain) entry.record = changedRecord(entry.record, { isRepeat: true })
      this.#return(entry, lease)
    }
    this.questions.return(lease.questions ?? [], isUncertain)
    this.#close(lease)
  }

  /** Removes the claims of a lease, because its message is complete. Tasks that end later are not taken. The lease keeps the entries that it has. */
  dropClaims(deliveryId: string): void {
    const lease = this.#leases.get(deliveryId)
    if (lease !== undefined) this.#dropClaims(lease)
  }

  /** Handles a message that was accepted after its lease was released. Its results and questions are no longer owed. */
  acceptLate(deliveryId: string, entries: readonly TaskEntry[], questions: readonly OwedQuestion[] = []): void {
    const { deliveries } = this.#options
    const outstanding = entries.filter(isOutstanding)
    const asked = questions.filter(({ delivery }) => delivery === 'owed')
    for (const entry of outstanding) deliveries?.onCarried(deliveryId, entry)
    for (const question of asked) deliveries?.onCarried(deliveryId, question.entry, question)
    if (outstanding.length + asked.length > 0) deliveries?.onAccepted(deliveryId)
    this.questions.acceptLate(questions)
    for (const entry of entries) {
      if (entry.record.delivery === 'owed') this.#deliver(entry, deliveryId)
      else entry.isAccepted = true
    }
  }

  /**
   * Makes the content of a delivered message owed again.
   * @param entries the entries that may have been in the message
   * @returns false if nothing of the content can be delivered again
   */
  repeat(deliveryId: string, entries: Iterable<TaskEntry>): boolean {
    const delivered = [...entries].filter(
      ({ lease, record, isDisowned }) => lease?.id === deliveryId && record.delivery === 'delivered' && !isDisowned,
    )
    for (const entry of delivered) {
      entry.lease = undefined
      entry.isAccepted = false
      entry.record = changedRecord(entry.record, { isRepeat: true })
      this.#options.onRepeated?.(entry)
      this.#add(entry, 'owed')
      this.#setDelivery(entry, 'owed', deliveryId)
    }
    return delivered.length + this.questions.repeat(deliveryId) > 0
  }

  /** Marks the result of a task as delivered by the host itself. */
  markDelivered(entry: TaskEntry): void {
    if (!isTerminal(entry.record) || !isOutstanding(entry)) return
    this.#options.deliveries?.onMarked(entry)
    this.#deliver(entry, undefined)
  }

  /** Transfers the tasks of an owner to its heir. Without an heir, nobody receives their results. */
  releaseOwner(owner: string, heir: string | undefined): void {
    if (heir === owner) return
    this.questions.releaseOwner(owner, heir)
    const account = this.#accounts.get(owner)
    if (account === undefined) return
    const [queued, running, owed] = [this.queued(owner), this.running(owner), this.owed(owner)]
    const leased = this.#entries('leased', owner).sort(byRegistration)
    if (heir === undefined) {
      for (const entry of [...queued, ...running, ...leased]) entry.isDisowned = true
      for (const entry of owed) {
        this.#remove(entry, 'owed')
        this.#setDelivery(entry, 'none', undefined)
        this.#options.onCleared(entry)
      }
    } else {
      for (const [part, entries] of [
        ['queued', queued],
        ['running', running],
        ['owed', owed],
        ['leased', leased],
      ] as const) {
        for (const entry of entries) {
          this.#remove(entry, part)
          entry.record = changedRecord(entry.record, { owner: heir })
          this.#add(entry, part)
          this.#options.journal.owner(entry, owner)
        }
      }
    }
    this.#closeIfEmpty(owner)
  }

  #entries(part: AccountPart, owner: string | undefined): TaskEntry[] {
    if (owner !== undefined) return [...(this.#accounts.get(owner)?.[part] ?? [])]
    return [...this.#accounts.values()].flatMap((account) => [...(account[part] ?? [])])
  }

  #account(owner: string): OwnerAccount {
    let account = this.#accounts.get(owner)
    if (account === undefined) {
      account = this.#spare ?? {
        queued: undefined,
        running: undefined,
        owed: undefined,
        leased: undefined,
        exclusive: undefined,
      }
      this.#spare = undefined
      this.#accounts.set(owner, account)
    }
    return account
  }

  #add(entry: TaskEntry, part: AccountPart): void {
    const account = this.#account(entry.record.owner)
    ;(account[part] ??= new Set()).add(entry)
    this.#totals[part] += 1
  }

  #remove(entry: TaskEntry, part: AccountPart): void {
    if (this.#accounts.get(entry.record.owner)?.[part]?.delete(entry) === true) this.#totals[part] -= 1
  }

  #closeIfEmpty(owner: string): void {
    const account = this.#accounts.get(owner)
    if (account === undefined || account.exclusive !== undefined) return
    if (PARTS.some((part) => (account[part]?.size ?? 0) > 0)) return
    this.#accounts.delete(owner)
    this.#spare = account
  }

  #putInLease(entry: TaskEntry, lease: Lease): void {
    entry.lease = lease
    lease.entries.add(entry)
    this.#add(entry, 'leased')
    this.#options.deliveries?.onCarried(lease.id, entry)
  }

  #takeOutOfLease(entry: TaskEntry): void {
    entry.lease?.entries.delete(entry)
    entry.lease = undefined
    this.#remove(entry, 'leased')
  }

  #deliver(entry: TaskEntry, deliveryId: string | undefined): void {
    const { lease } = entry
    const { delivery, owner } = entry.record
    if (!isOutstanding(entry)) return
    if (delivery === 'leased') this.#takeOutOfLease(entry)
    else this.#remove(entry, 'owed')
    entry.lease = deliveryId === undefined || lease?.id === deliveryId ? lease : endedLease(deliveryId)
    this.#setDelivery(entry, 'delivered', deliveryId)
    this.#options.onCleared(entry)
    this.#closeIfEmpty(owner)
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
      this.#options.onCleared(entry)
    } else if (claim !== undefined) {
      this.#putInLease(entry, claim)
      this.#options.journal.delivery(entry, 'leased', claim.id)
    } else {
      this.#add(entry, 'owed')
      this.#setDelivery(entry, 'owed', lease.id)
    }
    this.#closeIfEmpty(entry.record.owner)
  }

  #dropClaims(lease: Lease): void {
    for (const entry of lease.claimed) {
      dropClaim(entry, lease)
    }
    lease.claimed.clear()
  }

  #close(lease: Lease): void {
    this.#leases.delete(lease.id)
    this.#dropClaims(lease)
    const owner = lease.exclusiveOwner
    if (owner === undefined) return
    this.#account(owner).exclusive = undefined
    this.#closeIfEmpty(owner)
    this.#options.journal.leaseEnded(owner)
  }

  #setDelivery(entry: TaskEntry, delivery: DeliveryStatus, deliveryId: string | undefined): void {
    const { journal } = this.#options
    const from = entry.record.delivery
    entry.record =
      delivery === 'delivered'
        ? deliveredRecord(entry.record, journal.now())
        : changedRecord(entry.record, { delivery })
    journal.delivery(entry, from, deliveryId)
  }
}

const PARTS = ['queued', 'running', 'owed', 'leased'] as const satisfies readonly AccountPart[]

const isClaimable = ({ record }: TaskEntry): boolean => !isTerminal(record) || record.delivery === 'leased'

function nextClaim(entry: TaskEntry): Lease | undefined {
  const [claim] = entry.claims ?? []
  if (claim !== undefined) dropClaim(entry, claim)
  return claim
}

function dropClaim(entry: TaskEntry, claim: Lease): void {
  entry.claims?.delete(claim)
  if (entry.claims?.size === 0) entry.claims = undefined
}
