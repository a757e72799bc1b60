/**
 * The handle of one launched task.
 *
 * 1  The result of a task is delivered once: by its handle, if `result` was read, or by a message.
 * 2  A handle knows its own task, also when its record was pruned and its id is that of another task.
 * 3  A handle whose result is never read changes nothing.
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
 * One launched task. `for await (const event of handle)` iterates over its progress, questions and output, and ends with the task; it takes no result.
 *
 * The result of a task is delivered once. Reading `result` means that you take it: no message to the agent carries it then. If you never read it, it is
 * delivered to the owner of the task as any other result.
 */
export interface TaskHandle<Output = OutputObject> extends AsyncIterable<TaskHandleEvent> {
  /** The id of the task. */
  readonly id: string
  /**
   * The output of the task, once it has ended; every read returns the same promise. The first read takes the result:
   * before the end it claims it, as `manager.waitFor` does, and after the end it marks it as delivered, unless a message holds it already.
   * With a store, a result that was read shortly before a crash is owed to the owner again, marked as a possible repeat.
   *
   * Rejects with `TaskFailedError` or `TaskCancelledError` (also on `dispose`), and with `StoreError` when the store cannot be written: then the result stays
   * owed, and the next read tries again.
   */
  readonly result: Promise<Output>
  /** The present record: a frozen snapshot. It stays after the manager has pruned it. */
  readonly record: AsyncTaskInfo
  /** What the task writes, from the first byte that is kept to the end of the task. A slow subscriber loses what is no longer kept. */
  readonly output$: Observable<TaskOutputEvent>
  /**
   * Cancels the task, and what its run has launched. False when it had ended.
   * @param reason why, in words; the record and the error of `result` have it
   * @throws InvalidInputError for a reason that is no text; nothing has changed then
   */
  cancel(reason?: CancelOptions | string): boolean
  /**
   * Moves the task to the background, if it was launched with `isForeground` (`AsyncTaskManager.detachTask`).
   * @returns whether it was moved; if not, the reason
   * @throws TaskLimitError when no slot is free; nothing has changed then
   */
  detach(): DetachResult
  /**
   * Sends a message to the run of the task (`context.messages`).
   * @returns whether it was accepted; if not, the reason
   * @throws InvalidInputError for a message that is not a text, or is empty
   */
  send(message: string): SendResult
  /**
   * Answers a question of the task.
   * @param answer `{ action, content? }`, or the value of the question's only field, or an object with its fields
   * @returns false, with nothing changed, when that question is not open
   * @throws InvalidInputError for an answer that does not match the schema of its question, which stays open
   */
  answer(questionId: string, answer: TaskAnswer | AnswerValue): boolean
}

/** Makes the handle of a task, which is retained. */
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

  constructor(manager: AsyncTaskManager, entry: TaskEntry) {
    this.id = entry.record.id
    this.#manager = manager
    this.#entry = entry
  }

  get result(): Promise<Output> {
    return (this.#result ??= this.#take().then(
      () => outputOfEnd(this.record) as Output,
      (error: unknown) => {
        this.#result = undefined
        throw error
      },
    ))
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

  /** Its record may have been pruned, and another task may have its id. */
  get #isRetained(): boolean {
    return this.#manager.reads.history.get(this.id) === this.#entry
  }

  /** Takes the result: resolves when the task has ended, and its result is delivered. */
  async #take(): Promise<void> {
    if (!isTerminal(this.record)) await this.#manager.waitFor([this.id])
    // Not by a wait: it would also take what a message holds, which is still owed when that message is refused.
    else if (this.#isRetained) {
      const lease = this.#manager.lease({ taskIds: [this.id] })
      if (lease?.stored !== undefined) await lease.stored
      lease?.acknowledge()
    }
  }
}

function outputOfEnd(record: AsyncTaskInfo): OutputObject {
  // A machine of the host's own may refuse to be cancelled.
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
