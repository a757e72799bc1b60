/**
 * The idle limits of runs (promise F10). A run that has no output and reports no progress for the `idleMs` of its task must conclude, as if it had
 * exceeded a budget. Time in which it waits for an answer or for a task that it has launched, and in which a durable run only waits, does not count.
 */
import { DueTimes } from '../../../machines/due-times.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { elapsedMs } from '../../system/clock.js'
import type { Feature } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { DeadlineTimer } from '../limits/deadline-timer.js'

/** The code of the error of a task that was idle for too long. */
const TASK_IDLE = 'TASK_IDLE'

class IdleLimits implements Feature {
  readonly #registry: TaskRegistry
  /** When each run was last active, on the clock of `elapsedMs`. */
  readonly #activeAt = new Map<TaskEntry, number>()
  /** When each run may have been idle for too long. Reports do not change these times, because they are frequent. */
  readonly #dues = new DueTimes<TaskEntry>()
  readonly #timer: DeadlineTimer

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    this.#timer = new DeadlineTimer(registry.clock, () => this.#check())
  }

  runStarted(entry: TaskEntry): void {
    const { idleMs } = entry.record
    if (idleMs === undefined || entry.ref === undefined) return
    const now = elapsedMs(this.#registry.clock)
    this.#activeAt.set(entry, now)
    this.#dues.set(entry, now + idleMs)
    this.#setTimer()
  }

  runEnded(entry: TaskEntry): void {
    if (!this.#activeAt.has(entry)) return
    this.#drop(entry)
    this.#setTimer()
  }

  reported(entry: TaskEntry): void {
    if (this.#activeAt.has(entry)) this.#activeAt.set(entry, elapsedMs(this.#registry.clock))
  }

  /** A question was asked or answered. */
  changed(entry: TaskEntry): void {
    this.reported(entry)
  }

  resumed(entry: TaskEntry): void {
    this.reported(entry)
  }

  ended(entry: TaskEntry): void {
    if (this.#activeAt.size === 0) return
    const parent = this.#registry.history.get(entry.record.parentId ?? '')
    if (parent !== undefined) this.reported(parent)
    this.runEnded(entry)
  }

  disposed(): void {
    for (const entry of [...this.#activeAt.keys()]) this.#drop(entry)
    this.#setTimer()
  }

  #check(): void {
    const now = elapsedMs(this.#registry.clock)
    for (const entry of this.#dues.takeAll(now)) {
      const { idleMs = 0 } = entry.record
      const at = this.#isWaiting(entry) ? now : (this.#activeAt.get(entry) ?? now)
      if (at + idleMs > now) this.#dues.set(entry, at + idleMs)
      else this.#exceed(entry, idleMs)
    }
    this.#setTimer()
  }

  #exceed(entry: TaskEntry, idleMs: number): void {
    this.#drop(entry)
    const limit = idleMs % 1000 === 0 ? `${idleMs / 1000} s` : `${idleMs} ms`
    const message = `Task was idle: it reported nothing within its limit of ${limit}.`
    this.#registry.send({ type: 'limit.exceeded', entry, message, errorCode: TASK_IDLE })
  }

  #isWaiting(entry: TaskEntry): boolean {
    const { active, families } = this.#registry
    return entry.record.questions !== undefined || !active.isWorking(entry) || families.liveChildren(entry).length > 0
  }

  #drop(entry: TaskEntry): void {
    this.#activeAt.delete(entry)
    this.#dues.delete(entry)
  }

  #setTimer(): void {
    const { next, nextKey } = this.#dues
    this.#timer.set(next, () => ({ name: `idle limit of ${nextKey?.record.id ?? ''}`, kind: 'deadline' }))
  }
}

export const idleLimits = (registry: TaskRegistry): Feature => new IdleLimits(registry)
