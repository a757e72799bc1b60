/**
 * Asks the user of a client the questions of tasks, by elicitation, while requests of that client are open.
 *
 * - A question is shown in one form at a time, even if several open requests follow its task. When the request that asks it ends, another open one asks it.
 * - The first answer wins: a question that was answered elsewhere is withdrawn.
 * - If an answer does not arrive, or does not match, the question stays open. The same request does not ask it again.
 */
import type { ServerContext } from '@modelcontextprotocol/server'
import { merge } from 'rxjs'
import type { AsyncTaskInfo, TaskQuestion } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Asking, QuestionAsker } from '../async-tasks/questions/question-askers.js'
import { MAX_TIMER_MS } from '../clock.js'
import { defined } from '../defined.js'
import { answerTo, formOf, isForm } from './question-forms.js'

interface OpenRequest {
  readonly context: ServerContext
  /** The `_meta` of its forms. */
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly onGivenUp: (taskId: string) => void
  /** Aborts when it ends. */
  readonly ended: AbortController
  readonly taskIds: Set<string>
  /** The questions that it asked without a valid answer. */
  readonly failed: Set<string>
}

export class Elicitations {
  readonly #manager: AsyncTaskManager
  readonly #open = new Set<OpenRequest>()
  /** The request that asks each question. */
  readonly #askedBy = new Map<string, OpenRequest>()

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /** What asks the user of a client while one of its requests is open. */
  askerOf(context: ServerContext, meta?: Readonly<Record<string, unknown>>): QuestionAsker {
    return {
      begin: (onGivenUp) => {
        const request = {
          context,
          meta,
          onGivenUp,
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

  /** @returns whether this request, or another one, asks it */
  #ask(request: OpenRequest, taskId: string, question: TaskQuestion): boolean {
    const key = keyOf(taskId, question)
    if (request.failed.has(key) || !isForm(question)) return false
    if (this.#askedBy.has(key)) return true
    this.#askedBy.set(key, request)
    // In a microtask, because a transition may be under way.
    queueMicrotask(() => void this.#send(request, taskId, question))
    return true
  }

  async #send(request: OpenRequest, taskId: string, question: TaskQuestion): Promise<void> {
    const isOpen = (): boolean => this.#questionsOf(taskId).some(({ id }) => id === question.id)
    // The question may have been answered and the request may have ended since.
    if (!request.ended.signal.aborted && isOpen()) await this.#elicit(request, taskId, question, isOpen)
    this.#forget(keyOf(taskId, question), request)
    this.#passOn(taskId)
  }

  /** Shows the form of a question. Never rejects. */
  async #elicit(request: OpenRequest, taskId: string, question: TaskQuestion, isOpen: () => boolean): Promise<void> {
    const { context, meta, ended } = request
    const withdrawn = new AbortController()
    const { questions$, settled$ } = this.#manager
    // Cancelling a task withdraws its questions.
    const subscription = merge(questions$, settled$).subscribe(() => {
      if (!isOpen()) withdrawn.abort()
    })
    // Prevents another answer from asking it meanwhile.
    const lease = this.#manager.lease({ taskIds: [], questions: [{ taskId, questionId: question.id }] })
    const release = (): void => lease?.release()
    ended.signal.addEventListener('abort', release, { once: true })
    const { method, params } = formOf(question)
    try {
      await lease?.stored
      const signal = AbortSignal.any([context.mcpReq.signal, ended.signal, withdrawn.signal])
      const sent = { method, params: { ...params, ...defined({ _meta: meta }) } }
      const answer = await context.mcpReq.send(sent, { signal, timeout: MAX_TIMER_MS })
      this.#manager.answerTask(taskId, question.id, answerTo(question, answer))
      lease?.acknowledge()
    } catch {
      // The model can still answer it with answer_async_task.
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

  /** The request no longer asks the question: another open request asks it, if there is one. */
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

  #questionsOf(taskId: string): readonly TaskQuestion[] {
    return this.#manager.getTask(taskId)?.questions ?? []
  }
}

const keyOf = (taskId: string, { id }: TaskQuestion): string => `${id} ${taskId}`
