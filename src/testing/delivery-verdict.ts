/** What a log of deliveries proves: whether every result was told, once, in order, and nothing is left lying. */
import { parseInput } from '../protocol/parse.js'
import { z } from 'zod'
import { parseDeliveryLog, type DeliveryLogEntry } from './delivery-log.js'

/** One thing that is wrong. */
export interface DeliveryProblem {
  /** The task it is about. */
  readonly taskId: string
  /** What happened, in a sentence. */
  readonly what: string
  /** The index of the entry that shows it. */
  readonly entry: number
}

/** The verdict on a log. */
export interface DeliveryVerdict {
  /** Nothing is wrong. */
  readonly isClean: boolean
  /** Results that can not be told any more: forgotten untold, or noted as told although the agent did not accept them. */
  readonly lost: readonly DeliveryProblem[]
  /** Results that the agent accepted twice, or that two messages carried at one time. */
  readonly duplicated: readonly DeliveryProblem[]
  /** What came before what it follows from, or after its end; results in a message that did not end in its order. */
  readonly outOfOrder: readonly DeliveryProblem[]
  /** Results that are owed at the end of the log, and nothing is under way or due that would tell them. */
  readonly stranded: readonly DeliveryProblem[]
  /** How many tasks the log has, how many of them owed a result, and how many of those were told. */
  readonly counts: { readonly tasks: number; readonly owing: number; readonly told: number }
}

/** How to read a log. */
export interface DeliveryCheckOptions {
  /**
   * How long a result may be owed or on its way at the end of the log, in ms, before it is stranded. Default 0: the log is
   * that of a run that has come to rest.
   */
  readonly graceMs?: number
  /** When the log was taken, in ms since the epoch. Default: the time of its last entry. */
  readonly now?: number
  /**
   * How far back an entry may be dated before the ones above it, in ms, for the clock of a computer is set right now and then.
   * Default 1,000; beyond it the entries are out of order.
   */
  readonly clockStepMs?: number
}

const optionsSchema = z.strictObject({
  graceMs: z.number().min(0).optional(),
  now: z.number().optional(),
  clockStepMs: z.number().min(0).optional(),
})

interface Account {
  readonly taskId: string
  owner: string
  /** The place of its end among the ends; undefined while it runs. */
  endedAs: number | undefined
  owes: boolean
  /** Since when it is owed or on its way. */
  since: number
  lease: string | undefined
  /** How often the agent accepted it. */
  told: number
  /** The ledger believes that it was told, and the host had yet to say so. */
  unproven: number | undefined
  isPruned: boolean
}

/**
 * Judges a log of deliveries, of a test or of production.
 *
 * The agent was told of a result when the host says so (`told`). Where the log holds no turn for a delivery (`woken`), its
 * acknowledgement is enough: that is how waits and next-turn reminders look.
 * @param log entries, or the text of a file with one a line
 * @throws InvalidInputError for an entry or an option that does not fit
 * @example
 * const verdict = checkDeliveryLedger(await readFile('deliveries.jsonl', 'utf8'), { graceMs: 60_000 })
 * if (!verdict.isClean) console.error(verdict.lost, verdict.duplicated, verdict.outOfOrder, verdict.stranded)
 */
export function checkDeliveryLedger(
  log: string | Iterable<unknown>,
  options: DeliveryCheckOptions = {},
): DeliveryVerdict {
  const { graceMs = 0, now, clockStepMs = 1000 } = parseInput(optionsSchema, options, 'options')
  const entries = parseDeliveryLog(log)
  const reader = new LogReader(clockStepMs)
  entries.forEach((entry, index) => reader.read(entry, index))
  return reader.conclude(entries.length - 1, now ?? entries.at(-1)?.at ?? 0, graceMs)
}

class LogReader {
  readonly #accounts = new Map<string, Account>()
  readonly #finished: Account[] = []
  readonly #woken = new Set<string>()
  readonly #proven = new Set<string>()
  /** When each owner's results are looked at next. */
  readonly #dues = new Map<string, number>()
  readonly #lost: DeliveryProblem[] = []
  readonly #duplicated: DeliveryProblem[] = []
  readonly #outOfOrder: DeliveryProblem[] = []
  #ends = 0
  #at = -Infinity
  #index = 0
  readonly #clockStepMs: number

  constructor(clockStepMs: number) {
    this.#clockStepMs = clockStepMs
  }

  read(entry: DeliveryLogEntry, index: number): void {
    this.#index = index
    if (entry.at < this.#at - this.#clockStepMs) {
      this.#note(this.#outOfOrder, subjectOf(entry), `the entry is of ${entry.at}, after one of ${this.#at}`)
    }
    this.#at = Math.max(this.#at, entry.at)
    switch (entry.type) {
      case 'registered':
        this.#register(entry)
        return
      case 'settled':
        this.#settle(entry)
        return
      case 'woken':
        this.#woken.add(entry.deliveryId)
        this.#checkSequence(entry.taskIds)
        return
      case 'leased':
        for (const account of this.#known(entry.taskIds, 'was leased')) this.#lease(account, entry.deliveryId, entry.at)
        return
      case 'told':
        if (entry.deliveryId !== undefined) this.#proven.add(entry.deliveryId)
        for (const account of this.#known(entry.taskIds, 'was told')) this.#tell(account)
        return
      case 'acknowledged':
        for (const account of this.#known(entry.taskIds, 'was acknowledged')) {
          this.#acknowledge(account, entry.deliveryId)
        }
        return
      case 'returned':
        for (const account of this.#known(entry.taskIds, 'was returned')) {
          account.lease = undefined
          account.since = entry.at
        }
        return
      case 'moved':
        for (const account of this.#known([entry.taskId], 'was moved', false)) account.owner = entry.owner
        return
      case 'dropped':
        for (const account of this.#known(entry.taskIds, 'was dropped', false)) account.owes = false
        return
      case 'pruned':
        this.#prune(entry.taskId)
        return
      case 'wake-up':
        this.#dues.set(entry.owner, entry.dueAt)
    }
  }

  conclude(last: number, now: number, graceMs: number): DeliveryVerdict {
    this.#index = Math.max(0, last)
    const stranded: DeliveryProblem[] = []
    const all = [...this.#finished, ...this.#accounts.values()]
    for (const account of all) {
      this.#checkProof(account)
      const isOpen = account.endedAs !== undefined && account.owes && account.told === 0 && !account.isPruned
      const isExpected = now - account.since < graceMs || (this.#dues.get(account.owner) ?? -Infinity) > now
      if (!isOpen || isExpected || account.unproven !== undefined) continue
      const how = account.lease === undefined ? 'is owed' : `is on its way in ${account.lease}`
      this.#note(
        stranded,
        account.taskId,
        `${how} to ${account.owner} since ${account.since}, and nothing will tell it`,
      )
    }
    const [lost, duplicated, outOfOrder] = [this.#lost, this.#duplicated, this.#outOfOrder]
    const owing = all.filter(({ owes, told }) => owes || told > 0)
    return {
      isClean: [lost, duplicated, outOfOrder, stranded].every(({ length }) => length === 0),
      lost,
      duplicated,
      outOfOrder,
      stranded,
      counts: { tasks: all.length, owing: owing.length, told: owing.filter(({ told }) => told > 0).length },
    }
  }

  #register({ taskId, owner, at }: Extract<DeliveryLogEntry, { type: 'registered' }>): void {
    const before = this.#accounts.get(taskId)
    if (before !== undefined) {
      if (!before.isPruned) this.#note(this.#outOfOrder, taskId, 'was registered again before its record was pruned')
      this.#finished.push(before)
    }
    const account: Account = {
      ...{ taskId, owner, endedAs: undefined, owes: false, since: at },
      ...{ lease: undefined, told: 0, unproven: undefined, isPruned: false },
    }
    this.#accounts.set(taskId, account)
  }

  #settle({ taskId, owes, at }: Extract<DeliveryLogEntry, { type: 'settled' }>): void {
    const [account] = this.#known([taskId], 'ended', false)
    if (account === undefined) return
    if (account.endedAs !== undefined) {
      this.#note(this.#outOfOrder, taskId, 'ended twice')
      return
    }
    Object.assign(account, { endedAs: (this.#ends += 1), owes, since: at })
  }

  #lease(account: Account, deliveryId: string, at: number): void {
    const { lease, taskId } = account
    if (lease !== undefined && lease !== deliveryId) {
      this.#note(this.#duplicated, taskId, `was leased by ${deliveryId} while ${lease} carried it`)
    }
    account.lease = deliveryId
    account.since = at
  }

  #acknowledge(account: Account, deliveryId: string | undefined): void {
    account.lease = undefined
    if (deliveryId !== undefined && this.#proven.has(deliveryId)) account.unproven = undefined
    else if (deliveryId !== undefined && this.#woken.has(deliveryId)) account.unproven = this.#index
    else this.#tell(account)
  }

  #tell(account: Account): void {
    account.told += 1
    account.unproven = undefined
    if (account.told > 1) this.#note(this.#duplicated, account.taskId, `was told ${account.told} times`)
  }

  #prune(taskId: string): void {
    const [account] = this.#known([taskId], 'was pruned')
    if (account === undefined) return
    account.isPruned = true
    if (account.owes && account.told === 0 && account.unproven === undefined) {
      this.#note(this.#lost, taskId, 'was pruned before it was told')
    }
  }

  #checkProof({ taskId, told, unproven }: Account): void {
    if (unproven === undefined || told > 0) return
    this.#lost.push({ taskId, what: 'was acknowledged, and the agent had not accepted it', entry: unproven })
  }

  /** The accounts of these tasks. What is unknown, or has not ended although it should have, is out of order. */
  #known(taskIds: readonly string[], what: string, mustHaveEnded = true): Account[] {
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
      if (problem !== undefined) this.#note(this.#outOfOrder, taskId, `${what} ${problem}`)
      return account === undefined ? [] : [account]
    })
  }

  /** A message carries results in the order in which they ended. */
  #checkSequence(taskIds: readonly string[]): void {
    let latest = 0
    for (const taskId of taskIds) {
      const endedAs = this.#accounts.get(taskId)?.endedAs ?? 0
      if (endedAs < latest) {
        this.#note(this.#outOfOrder, taskId, 'comes after a result that ended later, in one message')
      }
      latest = Math.max(latest, endedAs)
    }
  }

  #note(problems: DeliveryProblem[], taskId: string, what: string): void {
    problems.push({ taskId, what, entry: this.#index })
  }
}

function subjectOf(entry: DeliveryLogEntry): string {
  if ('taskId' in entry) return entry.taskId
  return 'taskIds' in entry ? entry.taskIds.join(', ') : entry.owner
}
