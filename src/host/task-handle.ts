/**
 * The handle of one launched task. The code keeps three rules:
 *
 * 1  The result of a task is delivered once: by its handle if `result` was read, otherwise by a message to the owner.
 * 2  A handle always refers to its own task, even after the record was pruned and another task uses the same id.
 * 3  A handle whose result is never read has no effect on the task.
 */
import type { Observable } from 'rxjs'
import { isOutstanding, isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import type { AsyncTaskInfo, OutputObject, TaskAnswer } from '../../machines/records.js'
import { endedAs } from '../../machines/task-status.js'
import type { DetachResult } from '../features/foreground/detaching.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { SendResult } from '../features/questions/messages.js'
import { outputOf, type TaskOutputEvent } from '../features/output/output-stream.js'
import type { AnswerValue } from '../features/questions/questions.js'
import { DisposedError } from '../errors.js'
import type { CancelOptions } from '../protocol/async-tasks.js'
import { eventsOf, type TaskHandleEvent } from './handle-events.js'
import { TaskCancelledError, TaskFailedError } from './task-errors.js'

/**
 * One launched task. `for await (const event of handle)` iterates over the progress, questions and output of the task, until it ends. The loop does
 * not claim the result.
 *
 * The result of a task is delivered once. The first read of `result` claims the result for your code, so no message to the agent contains it. There
 * is one exception: a message that already contains the result at that time. If you never read `result`, the owner of the task receives it.
 */
export interface TaskHandle<Output = OutputObject> extends AsyncIterable<TaskHandleEvent> {
  /** The id of the task. */
  readonly id: string
  /**
   * The output of the task, once it has ended. Every read returns the same promise, and the first read claims the result for your code.
   *
   * Read `result` before you iterate over the events, and await it later. If it rejects before you await it, the process does not report an unhandled
   * rejection. With a store, a result that you read shortly before a crash is delivered to the owner again, marked as a possible repeat.
   *
   * Rejects with `TaskFailedError` or `TaskCancelledError`. After `dispose` with a store, rejects with `DISPOSED`: the task is kept, and the
   * next process delivers the result to the owner. Rejects with `StoreError` when the store cannot be written;
   * the result then stays undelivered, and the next read tries again.
   */
  readonly result: Promise<Output>
  /**
   * The id of the delivery to your code, after `result` has settled. With a store, write this id to your transcript together with what you do with
   * the result. After a crash, the next process calls `wasDelivered` with this id. Undefined without a store, and if a message delivers the result.
   */
  readonly deliveryId: string | undefined
  /** The current record of the task, as a frozen snapshot. It stays available after the manager has removed the record. */
  readonly record: AsyncTaskInfo
  /** The output of the task, from the oldest byte that is kept until the task ends. A slow subscriber misses output that was dropped meanwhile. */
  readonly output$: Observable<TaskOutputEvent>
  /**
   * Cancels the task, and the tasks that its run has launched.
   * @param reason the reason in words; the record and the error of `result` contain it
   * @returns false if the task has ended
   * @throws INVALID_INPUT for a reason that is not text; the task is not cancelled then
   */
  cancel(reason?: CancelOptions | string): boolean
  /**
   * Moves the task to the background, if it was launched with `isForeground` (`AsyncTaskManager.detachTask`).
   * @returns whether the task was moved, or else the reason
   * @throws TASK_LIMIT when no slot is free; the task then stays in the foreground
   */
  detach(): DetachResult
  /**
   * Sends a message to the run of the task, which reads it from `context.messages`.
   * @returns whether the message was accepted, or else the reason
   * @throws INVALID_INPUT for a message that is empty or not text
   */
  send(message: string): SendResult
  /**
   * Answers a question of the task.
   * @param questionId the id of the question
   * @param answer `{ action, content? }`. Or, as a short form, an object with the fields of the answer, or the value of its only field
   * @returns false if the question is not open
   * @throws INVALID_INPUT for an answer that does not match the question's schema; the question then stays open
   */
  answer(questionId: string, answer: TaskAnswer | AnswerValue): boolean
}

/** Creates the handle of a task that the manager still keeps. */
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

  /** Whether the manager still keeps this task. Otherwise another task may use the same id. */
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
    // A caller may read `result` to claim it, and await it only after the task has failed. Without this handler, the process would report an
    // unhandled rejection.
    result.catch(() => undefined)
    return result
  }

  /** Claims the result. Resolves when the task has ended, and its result counts as delivered. */
  async #take(): Promise<void> {
    if (!isTerminal(this.record)) {
      const { settled, deliveryId } = await this.#manager.waitFor([this.id])
      if (settled.length === 0) throw new DisposedError(KEPT)
      this.#deliveryId = deliveryId
    }
    // An ended task is leased. `waitFor` would also take a result that a message already contains. If that message is refused, such a result must be
    // delivered again.
    else if (this.#isRetained) {
      const { isDisposed, persistence } = this.#manager.reads
      if (isDisposed && persistence !== undefined && isOutstanding(this.#entry)) throw new DisposedError(KEPT)
      const lease = this.#manager.lease({ taskIds: [this.id] })
      if (lease?.stored !== undefined) {
        await lease.stored
        this.#deliveryId = lease.deliveryId
      }
      lease?.acknowledge()
    }
  }
}

const KEPT =
  'The task manager was disposed before the result was delivered. With a store, the next process delivers the result.'

function outputOfEnd(record: AsyncTaskInfo): OutputObject {
  // The host may replace the task's state machine, and that machine may ignore a cancellation.
  if (!isTerminal(record)) throw new DisposedError()
  if (endedAs(record, 'succeeded')) return record.output
  throw endedAs(record, 'failed') ? new TaskFailedError(record) : new TaskCancelledError(record)
}
