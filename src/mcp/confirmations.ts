/**
 * Tracks when a client has certainly received an answer: when it makes its next call after that answer, and the answer to it is written. Until then the
 * results are sent again after a crash.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { ANONYMOUS } from './callers.js'

/** The maximum number of remembered owners. For other owners, the next results confirm the earlier messages. */
const MAX_OWNERS = 10_000

export class Confirmations {
  readonly #manager: AsyncTaskManager
  /** When an answer with results was last written to an owner that has not called since, on the scale of `begin`. */
  readonly #writtenAt = new Map<string, number>()
  #now = 0

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /** A call begins. Its answer, once written, confirms the earlier ones. */
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

  /** An answer with results was written to an owner. Anonymous clients share an owner, so they do not confirm each other's answers. */
  noteWritten(owner: string): void {
    if (this.#manager.reads.persistence === undefined || owner === ANONYMOUS.owner) return
    this.#writtenAt.delete(owner)
    this.#writtenAt.set(owner, this.begin())
    const [oldest] = this.#writtenAt.keys()
    if (this.#writtenAt.size > MAX_OWNERS && oldest !== undefined) this.#writtenAt.delete(oldest)
  }

  /** Removes an owner that is gone. */
  forget(owner: string): void {
    this.#writtenAt.delete(owner)
  }
}
