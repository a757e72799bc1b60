/**
 * When the client has the results of an answer for certain: with the next answer to a call that it made after it had got them. Until then they
 * are told again after a crash.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { ANONYMOUS } from './callers.js'

/** The most owners that are remembered. The messages of any other are confirmed by its next results. */
const MAX_OWNERS = 10_000

export class Confirmations {
  readonly #manager: AsyncTaskManager
  /** When the last answer with results was written to an owner that has not called since, on the scale of `begin`. */
  readonly #writtenAt = new Map<string, number>()
  #now = 0

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /** A call begins. Its answer, if it is written, confirms those that were written before. */
  begin(): number {
    return (this.#now += 1)
  }

  /** The answer to a call that began at `begunAt` was written. */
  confirm(owner: string, begunAt: number): void {
    const writtenAt = this.#writtenAt.get(owner)
    if (writtenAt === undefined || writtenAt > begunAt) return
    this.#writtenAt.delete(owner)
    const { reads } = this.#manager
    reads.batch(() => reads.persistence?.confirmOwner(owner))
  }

  /** An answer with results was written to an owner. Clients that share one do not answer for each other. */
  noteWritten(owner: string): void {
    if (this.#manager.reads.persistence === undefined || owner === ANONYMOUS.owner) return
    this.#writtenAt.delete(owner)
    this.#writtenAt.set(owner, this.begin())
    const [oldest] = this.#writtenAt.keys()
    if (this.#writtenAt.size > MAX_OWNERS && oldest !== undefined) this.#writtenAt.delete(oldest)
  }

  /** The owner is gone. */
  forget(owner: string): void {
    this.#writtenAt.delete(owner)
  }
}
