/**
 * The ledger: what is owed to each owner, and which message carries it (`owed -> leased -> delivered`, promises A5, A6). The ledger handles the
 * entries of tasks. An entry is in at most one lease, and an owner has at most one exclusive lease (R4).
 */
import { ACCOUNT_PARTS, Accounts, type AccountPart } from './accounts.js'
import type { LeaseRequest, LedgerOptions } from './ledger-options.js'
import { OwedQuestions } from './owed-questions.js'
import type { ActiveTaskInfo, DeliveryStatus, OutputObject, Settlement } from './records.js'
import {
  byEnd,
  byRegistration,
  isOutstanding,
  isTerminal,
  type Lease,
  type OwedQuestion,
  type TaskEntry,
} from './task-entry.js'
import { changedRecord, deliveredRecord, endedRecord } from './task-record.js'
import { accountOf, type ActiveStatus, hasEnded, wasStopped } from './task-status.js'

/** Keeps an account of what is owed to each owner, and the open leases. */
export class Ledger {
  /** The open questions of all tasks. Only the registry and the ledger change them. */
  readonly questions: OwedQuestions
  readonly #options: LedgerOptions
  readonly #accounts = new Accounts()
  readonly #leases = new Map<string, Lease>()

  constructor(options: LedgerOptions) {
    this.#options = options
    this.questions = new OwedQuestions({
      addresseeOf: options.addresseeOf ?? (({ record }) => record.owner),
      onOwed: (owner) => options.changes.questionOwed(owner),
      onChanged: (entry) => options.deliveries?.onAsked(entry),
    })
  }

  lease(deliveryId: string): Lease | undefined {
    return this.#leases.get(deliveryId)
  }

  /** Whether an exclusive lease of this owner is open. */
  isDelivering(owner: string): boolean {
    return this.#accounts.exclusiveOf(owner) !== undefined
  }

  /** Whether a question of this owner, or a result that may be delivered, is owed and in no message. */
  isOwing(owner: string, mayDeliver: (entry: TaskEntry) => boolean = () => true): boolean {
    return this.#accounts.some('owed', owner, mayDeliver) || this.questions.owed(owner).length > 0
  }

  /** Returns the entries whose results are owed and in no message, in the order in which the tasks ended. */
  owed(owner?: string): TaskEntry[] {
    return this.#accounts.entries('owed', owner).sort(byEnd)
  }

  /** Returns the running tasks, in the order of registration. */
  running(owner?: string): TaskEntry[] {
    return this.#accounts.entries('running', owner).sort(byRegistration)
  }

  /** Returns the queued tasks, in the order of registration. */
  queued(owner?: string): TaskEntry[] {
    return this.#accounts.entries('queued', owner).sort(byRegistration)
  }

  /** Returns the active tasks, in the order of registration. */
  active(owner?: string): TaskEntry[] {
    return [...this.#accounts.entries('queued', owner), ...this.#accounts.entries('running', owner)].sort(
      byRegistration,
    )
  }

  countOf(part: AccountPart, owner?: string): number {
    return this.#accounts.countOf(part, owner)
  }

  /** Returns how many tasks of the owner are active, owed or leased. Without an owner, counts all tasks. */
  outstanding(owner?: string): number {
    return ACCOUNT_PARTS.reduce((sum, part) => sum + this.countOf(part, owner), 0)
  }

  /** Counts, for each owner, the entries in one part of its account, such as `owed`. */
  countsByOwner(part: AccountPart): Map<string, number> {
    return this.#accounts.countsByOwner(part)
  }

  /** Adds a task that was registered or restored. */
  add(entry: TaskEntry): void {
    const { status, delivery } = entry.record
    if (!hasEnded(status)) this.#accounts.add(entry, accountOf(status))
    else if (delivery === 'owed') this.#accounts.add(entry, 'owed')
    else this.#options.onCleared(entry)
  }

  /** Moves a task that has started, or that waits for its next run, to the part of the account for the status in the new record. */
  move(entry: TaskEntry, record: ActiveTaskInfo, at: number): void {
    const from = entry.record.status as ActiveStatus
    this.#accounts.remove(entry, accountOf(from))
    entry.record = record
    this.#accounts.add(entry, accountOf(record.status))
    this.questions.update(entry)
    this.#options.changes.status(entry, from, at)
  }

  /** Ends a task: replaces its record, and adds its result to what is owed. `children` are those tasks of its run that are still active. */
  end(entry: TaskEntry, settlement: Settlement, children: readonly TaskEntry[] = []): void {
    const { changes, notifyCancelled, tailOf } = this.#options
    const outputTail = tailOf?.(entry, settlement)
    const from = entry.record.status as ActiveStatus
    const seq = changes.next()
    const isOwed = !entry.isDisowned && (!wasStopped(settlement.status) || notifyCancelled)
    const claim = isOwed ? nextClaim(entry) : undefined
    const delivery: DeliveryStatus = !isOwed ? 'none' : claim === undefined ? 'owed' : 'leased'
    const runningChildren = children.length === 0 ? undefined : Object.freeze(children.map(({ record }) => record.id))
    entry.record = endedRecord(entry.record, settlement, {
      delivery,
      seq,
      completedAt: changes.now(),
      outputTail,
      runningChildren,
    })
    this.#accounts.remove(entry, accountOf(from))
    this.questions.update(entry)
    changes.status(entry, from)
    if (claim !== undefined) this.#putInLease(entry, claim)
    else if (isOwed) this.#accounts.add(entry, 'owed')
    if (delivery !== 'none') changes.delivery(entry, 'none', claim?.id)
    this.#accounts.closeIfEmpty(entry.record.owner)
  }

  /** Completes a task whose run was suspended. Only the store reads the record: the account does not change, and nobody is notified. */
  complete(entry: TaskEntry, output: OutputObject): void {
    const { changes, tailOf } = this.#options
    const settlement = { status: 'completed', output } as const
    entry.record = endedRecord(entry.record, settlement, {
      delivery: entry.isDisowned ? 'none' : 'owed',
      seq: changes.next(),
      completedAt: changes.now(),
      outputTail: tailOf?.(entry, settlement),
    })
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
    if (exclusiveOwner !== undefined) this.#accounts.setExclusive(exclusiveOwner, lease)
    for (const entry of entries) {
      this.#accounts.remove(entry, 'owed')
      this.#putInLease(entry, lease)
      this.#setDelivery(entry, 'leased', deliveryId)
    }
    for (const question of questions) this.#options.deliveries?.onCarried(deliveryId, question.entry, question)
    if ([...entries, ...questions].some(({ repeatOf }) => repeatOf === deliveryId)) this.#part(deliveryId)
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

  /**
   * Ends the lease of a message that was not accepted: its results are owed again. With `isUncertain` the message may have arrived. Then its results
   * are marked as possible repeats, and belong together (`repeatOf`).
   */
  release(deliveryId: string, isUncertain = false): void {
    const lease = this.#leases.get(deliveryId)
    if (lease === undefined) return
    this.#options.deliveries?.onReleased(deliveryId)
    for (const entry of [...lease.entries]) {
      if (isUncertain && !entry.isAccepted && !entry.isDisowned) {
        entry.record = changedRecord(entry.record, { isRepeat: true })
        entry.repeatOf = deliveryId
      }
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
      ({ deliveredBy, record, isDisowned }) =>
        deliveredBy === deliveryId && record.delivery === 'delivered' && !isDisowned,
    )
    for (const entry of delivered) {
      entry.deliveredBy = undefined
      entry.isAccepted = false
      entry.record = changedRecord(entry.record, { isRepeat: true })
      this.#options.onRepeated?.(entry)
      this.#accounts.add(entry, 'owed')
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

  /** Transfers some of the tasks of an owner to its heir. */
  transfer(owner: string, heir: string, ids: ReadonlySet<string>): void {
    if (heir === owner) return
    this.questions.releaseOwner(owner, heir, ids)
    for (const part of ACCOUNT_PARTS) {
      for (const entry of this.#accounts.entries(part, owner).sort(byRegistration)) {
        if (ids.has(entry.record.id)) this.#transfer(entry, part, heir)
      }
    }
    this.#accounts.closeIfEmpty(owner)
  }

  #transfer(entry: TaskEntry, part: AccountPart, heir: string): void {
    const { owner } = entry.record
    this.#accounts.remove(entry, part)
    entry.record = changedRecord(entry.record, { owner: heir })
    this.#accounts.add(entry, part)
    this.#options.changes.owner(entry, owner)
  }

  /** Transfers the tasks of an owner to its heir. Without an heir, nobody receives their results. */
  releaseOwner(owner: string, heir: string | undefined): void {
    if (heir === owner) return
    this.questions.releaseOwner(owner, heir)
    if (!this.#accounts.has(owner)) return
    const [queued, running, owed] = [this.queued(owner), this.running(owner), this.owed(owner)]
    const leased = this.#accounts.entries('leased', owner).sort(byRegistration)
    if (heir === undefined) {
      for (const entry of [...queued, ...running, ...leased]) entry.isDisowned = true
      for (const entry of owed) {
        this.#accounts.remove(entry, 'owed')
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
        for (const entry of entries) this.#transfer(entry, part, heir)
      }
    }
    this.#accounts.closeIfEmpty(owner)
  }

  /** A repeat may lack some results, for example because of a pause. They get another id, because a receiver that knows this id ignores the repeat. */
  #part(deliveryId: string): void {
    for (const entry of [
      ...this.#accounts.entries('owed', undefined),
      ...this.#accounts.entries('leased', undefined),
    ]) {
      if (entry.repeatOf !== deliveryId || entry.lease?.id === deliveryId) continue
      entry.repeatOf = undefined
      this.#options.deliveries?.onParted(entry)
    }
    this.questions.part(deliveryId)
  }

  #putInLease(entry: TaskEntry, lease: Lease): void {
    entry.lease = lease
    lease.entries.add(entry)
    this.#accounts.add(entry, 'leased')
    this.#options.deliveries?.onCarried(lease.id, entry)
  }

  #takeOutOfLease(entry: TaskEntry): void {
    entry.lease?.entries.delete(entry)
    entry.lease = undefined
    this.#accounts.remove(entry, 'leased')
  }

  #deliver(entry: TaskEntry, deliveryId: string | undefined): void {
    const { lease } = entry
    const { delivery, owner } = entry.record
    if (!isOutstanding(entry)) return
    if (delivery === 'leased') this.#takeOutOfLease(entry)
    else this.#accounts.remove(entry, 'owed')
    entry.deliveredBy = deliveryId ?? lease?.id
    entry.repeatOf = undefined
    this.#setDelivery(entry, 'delivered', deliveryId)
    this.#options.onCleared(entry)
    this.#accounts.closeIfEmpty(owner)
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
      this.#options.changes.delivery(entry, 'leased', claim.id)
    } else {
      this.#accounts.add(entry, 'owed')
      this.#setDelivery(entry, 'owed', lease.id)
    }
    this.#accounts.closeIfEmpty(entry.record.owner)
  }

  #dropClaims(lease: Lease): void {
    for (const entry of lease.claimed) dropClaim(entry, lease)
    lease.claimed.clear()
  }

  #close(lease: Lease): void {
    this.#leases.delete(lease.id)
    this.#dropClaims(lease)
    const owner = lease.exclusiveOwner
    if (owner === undefined) return
    this.#accounts.setExclusive(owner, undefined)
    this.#accounts.closeIfEmpty(owner)
    this.#options.changes.leaseEnded(owner)
  }

  #setDelivery(entry: TaskEntry, delivery: DeliveryStatus, deliveryId: string | undefined): void {
    const { changes } = this.#options
    const from = entry.record.delivery
    entry.record =
      delivery === 'delivered'
        ? deliveredRecord(entry.record, changes.now())
        : changedRecord(entry.record, { delivery })
    changes.delivery(entry, from, deliveryId)
  }
}

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
