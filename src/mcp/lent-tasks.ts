/**
 * Tasks that one session of a token has lent to another one. Most clients do not delete their sessions, and a client that starts again opens another
 * one. What an idle session is owed would reach nobody until that session expires. So the next session gets it, and the idle one gets back what is still
 * outstanding when its client uses it again.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { transferTasks } from '../features/families/transferring.js'
import { leaseOf } from './task-handles.js'

export interface LentTasks {
  /** Lends what a session is owed, and its active tasks, to another session. What the client follows as an MCP task stays. */
  lend(from: string, to: string): void
  giveBack(from: string): void
  /** Gives the tasks that a session has borrowed back to their sessions, because it ends. */
  returnAll(borrower: string): void
  /** Forgets what a session has lent, because it ends. The tasks stay with the other session. */
  forget(from: string): void
}

export function createLentTasks(manager: AsyncTaskManager): LentTasks {
  /** For each owner: the tasks that it has lent, by the owner that has them. */
  const lent = new Map<string, Map<string, Set<string>>>()
  const move = (from: string, to: string, ids: ReadonlySet<string>): void => transferTasks(manager, { from, to, ids })
  return {
    lend: (from, to) => {
      const { ledger } = manager.reads
      const outstanding = [...manager.getActiveTasks(from), ...manager.getPendingNotifications(from)]
      const ids = outstanding.map(({ id }) => id).filter((id) => ledger.lease(leaseOf(id)) === undefined)
      if (ids.length === 0) return
      const own = new Set(ids)
      // A borrowed task is lent on in the name of the session that it belongs to.
      for (const [lender, byBorrower] of lent) {
        const borrowed = byBorrower.get(from)
        if (borrowed === undefined) continue
        byBorrower.delete(from)
        byBorrower.set(to, new Set([...(byBorrower.get(to) ?? []), ...borrowed]))
        for (const id of borrowed) own.delete(id)
        if (lender === to) byBorrower.delete(to)
      }
      if (own.size > 0) {
        const byBorrower = lent.get(from) ?? new Map<string, Set<string>>()
        lent.set(from, byBorrower.set(to, new Set([...(byBorrower.get(to) ?? []), ...own])))
      }
      move(from, to, new Set(ids))
    },
    giveBack: (from) => {
      const byBorrower = lent.get(from)
      lent.delete(from)
      for (const [borrower, ids] of byBorrower ?? []) move(borrower, from, ids)
    },
    returnAll: (borrower) => {
      for (const [lender, byBorrower] of lent) {
        const ids = byBorrower.get(borrower)
        byBorrower.delete(borrower)
        if (ids !== undefined) move(borrower, lender, ids)
      }
    },
    forget: (from) => void lent.delete(from),
  }
}
