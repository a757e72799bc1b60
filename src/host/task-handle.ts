/**
 * The handle of one launched task.
 *
 * 1  The result of a task is delivered once: by its handle if `result` was read, otherwise by a message.
 * 2  A handle keeps referring to its own task, even when the record was pruned and another task has the id.
 * 3  A handle whose result is never read has no effect.
 */
import type { Observable } from 'rxjs'
import { isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import type { AsyncTaskInfo, OutputObject, TaskAnswer } from '../../machines/records.js'
import type { DetachResult } from '../async-tasks/detaching.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { SendResult } from '../async-tasks/questions/messages.js'
import { outputOf, type TaskOutputEvent } from '../async-tasks/output/output-stream.js'
import type { AnswerValue } from '../async-tasks/questions/questions.js'
import { DisposedError } from '../errors.js'
import type { CancelOptions } from '../protocol/async-tasks.js'
import { eventsOf, type TaskHandleEvent } from './handle-events.js'
import { TaskCancelledError, TaskFailedError } from './task-errors.js'

/**
 * One launched task. `for await (const event of handle)` iterates over its progress, questions and output until the task ends. The loop does not take
 * the result.
 *
 * The result of a task is delivered once. The first read of `result` claims it, so that no message to the agent contains it; if a message already
 * contains it at that time, the agent gets it too. If you never read it, it is delivered to the owner of the task.
 */
export interface TaskHandle<Output = OutputObject> extends AsyncIterable<TaskHandleEvent> {
  /** The id of the task. */
  readonly id: string
  /**
   * The output of the task, once it has ended. Every read returns the same promise. The first read takes the result. Before the end it claims the
   * result, as `manager.waitFor` does; after the end it marks the result as delivered, unless a message already contains it. With a store, a result
   * that was read shortly before a crash is delivered to the owner again, marked as a possible repeat.
   *
   * Read it before you iterate over the events, and await it later: a rejection that nothing awaits yet is not reported as unhandled.
   *
   * Rejects with `TaskFailedError` or `TaskCancelledError` (also on `dispose`), or with `StoreError` when the store cannot be written. After a
   * `StoreError` the result is still undelivered, and the next read tries again.
   */
  readonly result: Promise<Output>
  /**
   * The id of the delivery to your code, once `result` has settled. With a store, write it to your transcript together with what you do with the
   * result, so that `wasDelivered` can answer for it after a crash. Undefined without a store, and if a message delivers the result.
   */
  readonly deliveryId: string | undefined
  /** The current record, as a frozen snapshot. Available even after the manager has pruned it. */
  readonly record: AsyncTaskInfo
  /** The output of the task, from the first byte that is kept until the task ends. A slow subscriber misses output that is no longer kept. */
  readonly output$: Observable<TaskOutputEvent>
  /**
   * Cancels the task and the tasks that its run has launched. Returns false if it has ended.
   * @param reason the reason in words, for the record and the error of `result`
   * @throws InvalidInputError for a reason that is not text; the task was not cancelled then
   */
  cancel(reason?: CancelOptions | string): boolean
  /**
   * Moves the task to the background, if it was launched with `isForeground` (`AsyncTaskManager.detachTask`).
   * @returns whether it was moved; if not, the reason
   * @throws TaskLimitError if no slot is free; the task stays in the foreground then
   */
  detach(): DetachResult
  /**
   * Sends a message to the run of the task (`context.messages`).
   * @returns whether it was accepted; if not, the reason
   * @throws InvalidInputError for a message that is empty or not text
   */
  send(message: string): SendResult
  /**
   * Answers a question of the task.
   * @param answer `{ action, content? }`, the value of the question's only field, or an object with its fields
   * @returns false if that question is not open
   * @throws InvalidInputError for an answer that does not match the question's schema; the question stays open
   */
  answer(questionId: string, answer: TaskAnswer | AnswerValue): boolean
}

/** Creates the handle of a task that is still kept. */
export function createTaskHandle<Output = OutputObject>(
  manager: AsyncTaskManager,
  entry: TaskEntry,
): TaskHandle<Output> {
  return new LaunchedTask<Output>(manager, entry)
}

class LaunchedTask<Output> implements TaskHandle<Output> {
  readonly id: string
  readonly #manager: AsyncTaskManager
  readonly #entry: TaskEntry
  #result: Promise<Output> | undefined
  #deliveryId: string | undefined

  constructor(manager: AsyncTaskManager, entry: TaskEntry) {
    this.id = entry.record.id
    this.#manager = manager
    this.#entry = entry
  }

  get result(): Promise<Output> {
    return (this.#result ??= this.#claimed())
  }

  get deliveryId(): string | undefined {
    return this.#deliveryId
  }

  get record(): AsyncTaskInfo {
    return this.#entry.record
  }

  get output$(): Observable<TaskOutputEvent> {
    return outputOf(this.#manager.reads, this.#entry, undefined)
  }

  cancel(reason: CancelOptions | string = {}): boolean {
    return this.#isRetained && this.#manager.cancelTask(this.id, reason)
  }

  detach(): DetachResult {
    return this.#isRetained ? this.#manager.detachTask(this.id) : { detached: false, reason: this.#ended }
  }

  send(message: string): SendResult {
    return this.#isRetained ? this.#manager.sendToTask(this.id, message) : { sent: false, reason: this.#ended }
  }

  answer(questionId: string, answer: TaskAnswer | AnswerValue): boolean {
    return this.#isRetained && this.#manager.answerTask(this.id, questionId, answer)
  }

  [Symbol.asyncIterator](): AsyncIterator<TaskHandleEvent, undefined> {
    return eventsOf(this.#manager.reads, this.#entry)
  }

  get #ended(): string {
    return `Task ${this.id} has ended: it is ${this.record.status}.`
  }

  /** The record may have been pruned, and another task may have the id. */
  get #isRetained(): boolean {
    return this.#manager.reads.history.get(this.id) === this.#entry
  }

  #claimed(): Promise<Output> {
    const result = this.#take().then(
      () => outputOfEnd(this.record) as Output,
      (error: unknown) => {
        this.#result = undefined
        throw error
      },
    )
    // Code may read `result` early to claim it, and await it after the task has failed.
    result.catch(() => undefined)
    return result
  }

  /** Takes the result. Resolves when the task has ended and its result is delivered. */
  async #take(): Promise<void> {
    if (!isTerminal(this.record)) this.#deliveryId = (await this.#manager.waitFor([this.id])).deliveryId
    // Not with a wait, which would also take a result that a message contains. Such a result must stay undelivered if the message is refused.
    else if (this.#isRetained) {
      const lease = this.#manager.lease({ taskIds: [this.id] })
      if (lease?.stored !== undefined) {
        await lease.stored
        this.#deliveryId = lease.deliveryId
      }
      lease?.acknowledge()
    }
  }
}

function outputOfEnd(record: AsyncTaskInfo): OutputObject {
  // A custom task machine may refuse to be cancelled.
  if (!isTerminal(record)) throw new DisposedError()
  switch (record.status) {
    case 'completed':
      return record.output
    case 'failed':
      throw new TaskFailedError(record)
    case 'cancelled':
      throw new TaskCancelledError(record)
  }
}
