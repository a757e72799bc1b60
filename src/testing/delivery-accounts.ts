/** Keeps an account of each task in a delivery log. Pass each entry to `add`, in order. Then `conclude` returns the verdict. */
import type { DeliveryLogEntry } from './delivery-log.js'

export interface DeliveryProblem {
  readonly taskId: string
  /** The problem, as the rest of a sentence that starts with the task's id. For example: `ended twice`. */
  readonly message: string
  /** The index of the entry that shows the problem. */
  readonly entry: number
}

/** The problems and counts of a log. */
export interface DeliveryVerdict {
  /** True if the four lists of problems are empty. */
  readonly isClean: boolean
  /** Results that are lost: their record was pruned while they were owed, or they were acknowledged although the agent had not accepted them. */
  readonly lost: readonly DeliveryProblem[]
  /** Results that the agent accepted twice, or that were in two messages at the same time. */
  readonly duplicated: readonly DeliveryProblem[]
  /**
   * Entries in a wrong order, such as a lease before the end of its task. Also messages whose results are not in the order in which their tasks ended.
   */
  readonly outOfOrder: readonly DeliveryProblem[]
  /** Results that are still owed or leased at the end of the log, although the log has no later wake-up of their owner. */
  readonly stranded: readonly DeliveryProblem[]
  /** The numbers of tasks in the log, of results that were owed, and of results that were delivered. */
  readonly counts: { readonly tasks: number; readonly owed: number; readonly delivered: number }
}

interface Account {
  readonly taskId: string
  owner: string
  /** The position of the task among all ended tasks; undefined while the task runs. */
  endedAs: number | undefined
  owes: boolean
  /** When the result became owed or leased, in ms since the epoch. */
  since: number
  lease: string | undefined
  /** How often the agent accepted the result. */
  accepted: number
  /** The index of an acknowledgement before the agent was reported to accept the message; undefined if there is none. */
  unproven: number | undefined
  isPruned: boolean
}

type EntryOf<Type extends DeliveryLogEntry['type']> = Extract<DeliveryLogEntry, { type: Type }>

export class DeliveryAccounts {
  readonly #clockStepMs: number
  readonly #accounts = new Map<string, Account>()
  /** The accounts of tasks whose id was registered again. */
  readonly #earlier: Account[] = []
  /** The ids of the deliveries that started a turn. */
  readonly #turns = new Set<string>()
  /** The ids of the deliveries that the agent accepted. */
  readonly #accepted = new Set<string>()
  /** When the host next checks what each owner is owed, in ms since the epoch. */
  readonly #wakeUps = new Map<string, number>()
  readonly #lost: DeliveryProblem[] = []
  readonly #duplicated: DeliveryProblem[] = []
  readonly #outOfOrder: DeliveryProblem[] = []
  #ends = 0
  /** The time of the latest entry so far. */
  #at = -Infinity
  #index = -1

  constructor(clockStepMs: number) {
    this.#clockStepMs = clockStepMs
  }

  add(entry: DeliveryLogEntry): void {
    this.#index += 1
    if (entry.at < this.#at - this.#clockStepMs) {
      this.#report(
        this.#outOfOrder,
        subjectOf(entry),
        `has an entry with the time ${entry.at} after an entry with the time ${this.#at}`,
      )
    }
    this.#at = Math.max(this.#at, entry.at)
    switch (entry.type) {
      case 'registered':
        this.#register(entry)
        return
      case 'settled':
        this.#settle(entry)
        return
      case 'leased':
        for (const account of this.#find(entry.taskIds, 'was leased')) this.#lease(account, entry)
        return
      case 'turn-started':
        this.#turns.add(entry.deliveryId)
        this.#checkSequence(entry.taskIds)
        return
      case 'accepted':
        if (entry.deliveryId !== undefined) this.#accepted.add(entry.deliveryId)
        for (const account of this.#find(entry.taskIds, 'was accepted')) this.#accept(account)
        return
      case 'acknowledged':
        for (const account of this.#find(entry.taskIds, 'was acknowledged')) this.#acknowledge(account, entry)
        return
      case 'returned':
        for (const account of this.#find(entry.taskIds, 'was returned')) {
          account.lease = undefined
          account.since = entry.at
        }
        return
      case 'repeated':
        for (const account of this.#find(entry.taskIds, 'was repeated')) {
          Object.assign(account, { accepted: 0, since: entry.at })
        }
        return
      case 'moved':
        for (const account of this.#find([entry.taskId], 'was moved', false)) account.owner = entry.owner
        return
      case 'dropped':
        for (const account of this.#find(entry.taskIds, 'was dropped', false)) account.owes = false
        return
      case 'pruned':
        for (const account of this.#find([entry.taskId], 'was pruned')) this.#prune(account)
        return
      case 'wake-up':
        this.#wakeUps.set(entry.owner, entry.dueAt)
    }
  }

  /**
   * @param now when the log ended, in ms since the epoch
   * @param graceMs how long a result may be owed or leased before it counts as stranded, in ms
   */
  conclude(now: number, graceMs: number): DeliveryVerdict {
    const stranded: DeliveryProblem[] = []
    const all = [...this.#earlier, ...this.#accounts.values()]
    for (const account of all) {
      const { taskId, owner, since, lease, unproven } = account
      if (unproven !== undefined && account.accepted === 0) {
        this.#lost.push({
          taskId,
          message: 'was acknowledged, although the agent had not accepted it',
          entry: unproven,
        })
      }
      const isOpen = account.endedAs !== undefined && account.owes && account.accepted === 0 && !account.isPruned
      const isExpected = now - since < graceMs || (this.#wakeUps.get(owner) ?? -Infinity) > now
      if (!isOpen || isExpected || unproven !== undefined) continue
      const state = lease === undefined ? `owed to ${owner}` : `leased by ${lease} for ${owner}`
      this.#report(stranded, taskId, `is ${state} since ${since}, and ${owner} has no later wake-up`)
    }
    const [lost, duplicated, outOfOrder] = [this.#lost, this.#duplicated, this.#outOfOrder]
    const owed = all.filter(({ owes, accepted }) => owes || accepted > 0)
    return {
      isClean: [lost, duplicated, outOfOrder, stranded].every(({ length }) => length === 0),
      lost,
      duplicated,
      outOfOrder,
      stranded,
      counts: {
        tasks: all.length,
        owed: owed.length,
        delivered: owed.filter(({ accepted }) => accepted > 0).length,
      },
    }
  }

  #register({ taskId, owner, at }: EntryOf<'registered'>): void {
    const before = this.#accounts.get(taskId)
    if (before !== undefined) {
      if (!before.isPruned) this.#report(this.#outOfOrder, taskId, 'was registered again before its record was pruned')
      this.#earlier.push(before)
    }
    this.#accounts.set(taskId, {
      taskId,
      owner,
      endedAs: undefined,
      owes: false,
      since: at,
      lease: undefined,
      accepted: 0,
      unproven: undefined,
      isPruned: false,
    })
  }

  #settle({ taskId, owes, at }: EntryOf<'settled'>): void {
    for (const account of this.#find([taskId], 'ended', false)) {
      if (account.endedAs !== undefined) this.#report(this.#outOfOrder, taskId, 'ended twice')
      else Object.assign(account, { endedAs: (this.#ends += 1), owes, since: at })
    }
  }

  #lease(account: Account, { deliveryId, at }: EntryOf<'leased'>): void {
    const { lease, taskId } = account
    if (lease !== undefined && lease !== deliveryId) {
      this.#report(this.#duplicated, taskId, `was leased by ${deliveryId} while ${lease} carried it`)
    }
    account.lease = deliveryId
    account.since = at
  }

  #acknowledge(account: Account, { deliveryId }: EntryOf<'acknowledged'>): void {
    account.lease = undefined
    if (deliveryId !== undefined && this.#accepted.has(deliveryId)) account.unproven = undefined
    else if (deliveryId !== undefined && this.#turns.has(deliveryId)) account.unproven = this.#index
    else this.#accept(account)
  }

  #accept(account: Account): void {
    account.accepted += 1
    account.unproven = undefined
    if (account.accepted > 1) {
      this.#report(this.#duplicated, account.taskId, `was delivered ${account.accepted} times`)
    }
  }

  #prune(account: Account): void {
    account.isPruned = true
    if (account.owes && account.accepted === 0 && account.unproven === undefined) {
      this.#report(this.#lost, account.taskId, 'was pruned before it was delivered')
    }
  }

  /** Returns the accounts of these tasks. Reports each task that is unknown or pruned, or that must have ended and has not. */
  #find(taskIds: readonly string[], event: string, mustHaveEnded = true): Account[] {
    return taskIds.flatMap((taskId) => {
      const account = this.#accounts.get(taskId)
      const problem =
        account === undefined
          ? 'before it was registered'
          : account.isPruned
            ? 'after its record was pruned'
            : mustHaveEnded && account.endedAs === undefined
              ? 'before it ended'
              : undefined
      if (problem !== undefined) this.#report(this.#outOfOrder, taskId, `${event} ${problem}`)
      return account === undefined ? [] : [account]
    })
  }

  /** Reports each result that comes after a result that ended later, in the same message. */
  #checkSequence(taskIds: readonly string[]): void {
    let latest = 0
    for (const taskId of taskIds) {
      const endedAs = this.#accounts.get(taskId)?.endedAs ?? 0
      if (endedAs < latest) {
        this.#report(this.#outOfOrder, taskId, 'comes after a result that ended later, in the same message')
      }
      latest = Math.max(latest, endedAs)
    }
  }

  #report(problems: DeliveryProblem[], taskId: string, message: string): void {
    problems.push({ taskId, message, entry: Math.max(0, this.#index) })
  }
}

function subjectOf(entry: DeliveryLogEntry): string {
  if ('taskId' in entry) return entry.taskId
  return 'taskIds' in entry ? entry.taskIds.join(', ') : entry.owner
}
