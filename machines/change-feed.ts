/** Gives every change of a task a number and a timestamp, and queues it for the host in order (R6). */
import type { DeliveryStatus, TaskAnswer } from './records.js'
import type { TaskTransition } from './transitions.js'
import type { AsyncTaskStatus } from './task-status.js'
import type { TaskEntry } from './task-entry.js'

/** A notification for the host, delivered after the transition of the registry. */
export type RegistryNotification =
  | { readonly type: 'transition'; readonly transition: TaskTransition; readonly entry: TaskEntry }
  /** An exclusive lease has ended, so the owner's next delivery may start. */
  | { readonly type: 'lease.ended'; readonly owner: string }
  | { readonly type: 'questions'; readonly entry: TaskEntry }
  /** A question was answered. A notification `questions` for the same task follows. */
  | { readonly type: 'answer'; readonly entry: TaskEntry; readonly questionId: string; readonly answer: TaskAnswer }
  /** A task has exceeded a budget and its run must conclude (`wrapping`), or it has reached a limit and its run must stop (`stopping`). */
  | { readonly type: 'limit'; readonly entry: TaskEntry; readonly state: 'wrapping' | 'stopping' }
  /** A task has moved from the foreground to the background. */
  | { readonly type: 'detached'; readonly entry: TaskEntry }
  /** What holds the tasks or results of this owner, or of all owners, has changed. */
  | { readonly type: 'hold'; readonly owner: string | undefined }
  /** A question must be delivered to this owner, for the first time or again. */
  | { readonly type: 'questions.owed'; readonly owner: string }

export class ChangeFeed {
  /** Returns the time, in ms since the epoch. */
  readonly now: () => number
  readonly #publish: (notification: RegistryNotification) => void
  #seq = 0

  /** @param publish queues a notification; must not call host code */
  constructor(now: () => number, publish: (notification: RegistryNotification) => void) {
    this.now = now
    this.#publish = publish
  }

  /** The number of the latest change. */
  get seq(): number {
    return this.#seq
  }

  next(): number {
    return ++this.#seq
  }

  continueAfter(seq: number): void {
    this.#seq = Math.max(this.#seq, seq)
  }

  /** Publishes a status change. `from` is null for a new task. The number of the change is already in the record. */
  status(entry: TaskEntry, from: AsyncTaskStatus | null, at?: number): void {
    const { record } = entry
    const { id: taskId, owner, seq, status: to } = record
    const time = at ?? record.completedAt ?? record.launchedAt
    this.#write(entry, { kind: 'status', seq, taskId, owner, from, to, at: time, record })
  }

  delivery(entry: TaskEntry, from: DeliveryStatus, deliveryId: string | undefined): void {
    const { record } = entry
    const { id: taskId, owner, delivery: to } = record
    const change = { kind: 'delivery', seq: this.next(), taskId, owner, from, to, at: this.now(), record } as const
    this.#write(entry, deliveryId === undefined ? change : { deliveryId, ...change })
  }

  owner(entry: TaskEntry, from: string): void {
    const { record } = entry
    const { id: taskId, owner } = record
    this.#write(entry, { kind: 'owner', seq: this.next(), taskId, owner, from, to: owner, at: this.now(), record })
  }

  pruned(entry: TaskEntry): void {
    const { record } = entry
    const { id: taskId, owner } = record
    const [seq, at] = [this.next(), this.now()]
    this.#write(entry, { kind: 'history', seq, taskId, owner, from: 'retained', to: 'pruned', at, record })
  }

  leaseEnded(owner: string): void {
    this.#publish({ type: 'lease.ended', owner })
  }

  questions(entry: TaskEntry): void {
    this.#publish({ type: 'questions', entry })
  }

  answer(entry: TaskEntry, questionId: string, answer: TaskAnswer): void {
    this.#publish({ type: 'answer', entry, questionId, answer })
  }

  limit(entry: TaskEntry, state: 'wrapping' | 'stopping'): void {
    this.#publish({ type: 'limit', entry, state })
  }

  detached(entry: TaskEntry): void {
    this.#publish({ type: 'detached', entry })
  }

  hold(owner: string | undefined): void {
    this.#publish({ type: 'hold', owner })
  }

  questionOwed(owner: string): void {
    this.#publish({ type: 'questions.owed', owner })
  }

  #write(entry: TaskEntry, transition: TaskTransition): void {
    this.#publish({ type: 'transition', transition: Object.freeze(transition), entry })
  }
}
