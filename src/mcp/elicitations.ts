/**
 * Asks the user of an MCP client the questions of tasks, with forms that the client shows (elicitation). A form can be shown only while a request of the
 * client is open.
 *
 * - Each question is shown in one form at a time, even if several open requests wait for its task. When the request that shows the form ends, another
 * open request shows the question again.
 * - The first answer counts. When a question is answered elsewhere, its form is withdrawn.
 * - If a form returns no valid answer, the question stays open, but the same request does not show it again.
 * - A form that was cancelled, or declined at once, is not answered (`readForm`). The model can still answer the question.
 */
import type { ServerContext } from '@modelcontextprotocol/server'
import { merge } from 'rxjs'
import type { AsyncTaskInfo, TaskQuestion } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Asking, QuestionAsker } from '../features/questions/question-askers.js'
import { elapsedMs, MAX_TIMER_MS } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { formOf, isForm, readForm } from './question-forms.js'

interface OpenRequest {
  readonly context: ServerContext
  /** The `_meta` of the forms that this request shows. */
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly onGivenUp: (taskId: string) => void
  readonly onUnread: (note: string) => void
  /** Aborts when the request ends. */
  readonly ended: AbortController
  readonly taskIds: Set<string>
  /** The keys (`keyOf`) of the questions whose form returned no valid answer to this request. */
  readonly failed: Set<string>
}

export class Elicitations {
  readonly #manager: AsyncTaskManager
  readonly #open = new Set<OpenRequest>()
  /** For each question, by its key: the request that shows its form. */
  readonly #askedBy = new Map<string, OpenRequest>()

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /**
   * Returns an object that asks the client's user while the request of `context` is open.
   * @param onUnread called with a text for the model when the client has declined a form by itself
   */
  askerOf(context: ServerContext, { meta, onUnread = () => undefined }: AskerOptions = {}): QuestionAsker {
    return {
      begin: (onGivenUp) => {
        const request = {
          context,
          meta,
          onGivenUp,
          onUnread,
          ended: new AbortController(),
          taskIds: new Set<string>(),
          failed: new Set<string>(),
        }
        this.#open.add(request)
        return { ask: (task) => this.#askAll(request, task), end: () => this.#end(request) } satisfies Asking
      },
    }
  }

  #askAll(request: OpenRequest, { id, questions = [] }: AsyncTaskInfo): boolean {
    request.taskIds.add(id)
    return questions.filter((question) => !this.#ask(request, id, question)).length === 0
  }

  /** @returns whether this request or another one asks the question */
  #ask(request: OpenRequest, taskId: string, question: TaskQuestion): boolean {
    const key = keyOf(taskId, question)
    if (request.failed.has(key) || !isForm(question)) return false
    if (this.#askedBy.has(key)) return true
    this.#askedBy.set(key, request)
    // Sent in a microtask, because the registry may be inside a transition now.
    queueMicrotask(() => void this.#send(request, taskId, question))
    return true
  }

  async #send(request: OpenRequest, taskId: string, question: TaskQuestion): Promise<void> {
    const isOpen = (): boolean => (this.#manager.getTask(taskId)?.questions ?? []).some(({ id }) => id === question.id)
    // Before the microtask ran, the question may have been answered, or the request may have ended.
    if (!request.ended.signal.aborted && isOpen()) await this.#elicit(request, taskId, question, isOpen)
    this.#forget(keyOf(taskId, question), request)
    this.#passOn(taskId)
  }

  /** Shows the form of a question. Never rejects. */
  async #elicit(request: OpenRequest, taskId: string, question: TaskQuestion, isOpen: () => boolean): Promise<void> {
    const { context, meta, ended } = request
    const withdrawn = new AbortController()
    const { questions$, settled$ } = this.#manager
    // A question is also withdrawn when its task is cancelled, so this listens to `settled$`, too.
    const subscription = merge(questions$, settled$).subscribe(() => {
      if (!isOpen()) withdrawn.abort()
    })
    // While this lease is held, no other answer carries the question to the client.
    const lease = this.#manager.lease({ taskIds: [], questions: [{ taskId, questionId: question.id }] })
    const release = (): void => lease?.release()
    ended.signal.addEventListener('abort', release, { once: true })
    const { method, params } = formOf(question)
    try {
      await lease?.stored
      const signal = AbortSignal.any([context.mcpReq.signal, ended.signal, withdrawn.signal])
      const sent = { method, params: { ...params, ...omitUndefined({ _meta: meta }) } }
      const { clock } = this.#manager.reads
      const sentAt = elapsedMs(clock)
      const response = await context.mcpReq.send(sent, { signal, timeout: MAX_TIMER_MS })
      const afterMs = elapsedMs(clock) - sentAt
      const answer = readForm(taskId, question, response, { afterMs, onUnread: request.onUnread })
      if (answer === undefined) throw new UnansweredError()
      this.#manager.answerTask(taskId, question.id, answer)
      lease?.acknowledge()
    } catch {
      // The question stays open, and the model can answer it with answer_async_task.
      release()
      request.failed.add(keyOf(taskId, question))
    } finally {
      subscription.unsubscribe()
      ended.signal.removeEventListener('abort', release)
    }
  }

  #end(request: OpenRequest): void {
    this.#open.delete(request)
    for (const [key, by] of this.#askedBy) if (by === request) this.#askedBy.delete(key)
    request.ended.abort()
    for (const taskId of request.taskIds) this.#passOn(taskId)
  }

  /** Asks the questions of a task again in the other open requests that follow it, after one request has stopped asking them. */
  #passOn(taskId: string): void {
    const task = this.#manager.getTask(taskId)
    if (task?.questions === undefined) return
    for (const request of this.#open) {
      if (request.taskIds.has(taskId) && !this.#askAll(request, task)) request.onGivenUp(taskId)
    }
  }

  #forget(key: string, request: OpenRequest): void {
    if (this.#askedBy.get(key) === request) this.#askedBy.delete(key)
  }
}

interface AskerOptions {
  readonly meta?: Readonly<Record<string, unknown>> | undefined
  readonly onUnread?: (note: string) => void
}

/** A form has returned no valid answer. */
class UnansweredError extends Error {}

const keyOf = (taskId: string, { id }: TaskQuestion): string => `${id} ${taskId}`
