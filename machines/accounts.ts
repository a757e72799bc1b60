/** The accounts of the ledger: the tasks of each owner that are active, owed or leased. */
import type { Lease, TaskEntry } from './task-entry.js'
import type { accountOf } from './task-status.js'

export type AccountPart = ReturnType<typeof accountOf> | 'owed' | 'leased'

export const ACCOUNT_PARTS = ['queued', 'running', 'owed', 'leased'] as const satisfies readonly AccountPart[]

interface Account extends Record<AccountPart, Set<TaskEntry> | undefined> {
  exclusive: Lease | undefined
}

/** Keeps the account of each owner that has tasks. */
export class Accounts {
  readonly #accounts = new Map<string, Account>()
  readonly #totals: Record<AccountPart, number> = { queued: 0, running: 0, owed: 0, leased: 0 }
  /** An empty account that the next owner reuses. That saves memory, because accounts are often opened and closed in turn. */
  #spare: Account | undefined

  has(owner: string): boolean {
    return this.#accounts.has(owner)
  }

  /** The open exclusive lease of an owner. */
  exclusiveOf(owner: string): Lease | undefined {
    return this.#accounts.get(owner)?.exclusive
  }

  setExclusive(owner: string, lease: Lease | undefined): void {
    this.#account(owner).exclusive = lease
  }

  countOf(part: AccountPart, owner?: string): number {
    return owner === undefined ? this.#totals[part] : (this.#accounts.get(owner)?.[part]?.size ?? 0)
  }

  /** Counts the entries in one part for each owner that has some. */
  countsByOwner(part: AccountPart): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [owner, account] of this.#accounts) {
      const count = account[part]?.size ?? 0
      if (count > 0) counts.set(owner, count)
    }
    return counts
  }

  /** Returns the entries in one part, of an owner or of all, in no order. */
  entries(part: AccountPart, owner: string | undefined): TaskEntry[] {
    if (owner !== undefined) return [...(this.#accounts.get(owner)?.[part] ?? [])]
    return [...this.#accounts.values()].flatMap((account) => [...(account[part] ?? [])])
  }

  some(part: AccountPart, owner: string, test: (entry: TaskEntry) => boolean): boolean {
    for (const entry of this.#accounts.get(owner)?.[part] ?? []) if (test(entry)) return true
    return false
  }

  add(entry: TaskEntry, part: AccountPart): void {
    const account = this.#account(entry.record.owner)
    ;(account[part] ??= new Set()).add(entry)
    this.#totals[part] += 1
  }

  remove(entry: TaskEntry, part: AccountPart): void {
    if (this.#accounts.get(entry.record.owner)?.[part]?.delete(entry) === true) this.#totals[part] -= 1
  }

  closeIfEmpty(owner: string): void {
    const account = this.#accounts.get(owner)
    if (account === undefined || account.exclusive !== undefined) return
    if (ACCOUNT_PARTS.some((part) => (account[part]?.size ?? 0) > 0)) return
    this.#accounts.delete(owner)
    this.#spare = account
  }

  #account(owner: string): Account {
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
}
