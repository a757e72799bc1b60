/**
 * Tracks which answers a client has certainly received. An answer is confirmed when the client makes another call after it, and the answer to that call
 * is written out. After a crash, the results in unconfirmed answers are sent again.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { ANONYMOUS } from './callers.js'

/** The maximum number of owners that are remembered. The answers to a forgotten owner are confirmed by its next answer with results. */
const MAX_OWNERS = 10_000

export class Confirmations {
  readonly #manager: AsyncTaskManager
  /** For each owner that has not called since its last answer with results: the number of that answer, from the counter that `begin` increases. */
  readonly #writtenAt = new Map<string, number>()
  #now = 0

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /** Returns a number for a call that begins. Pass it to `confirm` when the answer to the call was written out. */
  begin(): number {
    return (this.#now += 1)
  }

  /**
   * Confirms the answers that were written out before the call with the number `begunAt` began. Call this when the answer to that call was written out.
   */
  confirm(owner: string, begunAt: number): void {
    const writtenAt = this.#writtenAt.get(owner)
    if (writtenAt === undefined || writtenAt > begunAt) return
    this.#writtenAt.delete(owner)
    const { reads } = this.#manager
    reads.batch(() => reads.persistence?.confirmOwner(owner))
  }

  /**
   * Call this when an answer with results was written out. Anonymous clients share one owner, so a call of one client says nothing about the answers to
   * another: they are ignored.
   */
  noteWritten(owner: string): void {
    if (this.#manager.reads.persistence === undefined || owner === ANONYMOUS.owner) return
    this.#writtenAt.delete(owner)
    this.#writtenAt.set(owner, this.begin())
    const [oldest] = this.#writtenAt.keys()
    if (this.#writtenAt.size > MAX_OWNERS && oldest !== undefined) this.#writtenAt.delete(oldest)
  }

  /** Forgets an owner that makes no more calls. */
  forget(owner: string): void {
    this.#writtenAt.delete(owner)
  }
}
