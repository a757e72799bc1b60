/** Asks the user of a client the questions of a task, by elicitation, while a request of that client is open. */
import type { ServerContext } from '@modelcontextprotocol/server'
import type { TaskQuestion } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { MAX_TIMER_MS } from '../clock.js'
import { answerTo, formOf } from './question-forms.js'

/** The questions that requests have asked, by task and question, with the signal of the request. */
export type AskedQuestions = Map<string, AbortSignal>

interface AskOptions {
  readonly asked: AskedQuestions
  readonly _meta: Readonly<Record<string, unknown>>
}

/**
 * Asks each open question of a task once. An answer that does not arrive, or does not fit, leaves its question open for others.
 * A question that was answered elsewhere is withdrawn.
 */
export function askClient(
  manager: AsyncTaskManager,
  taskId: string,
  context: ServerContext,
  { asked, _meta }: AskOptions,
): void {
  const { signal } = context.mcpReq
  for (const question of manager.getTask(taskId)?.questions ?? []) {
    const key = `${question.id} ${taskId}`
    if (asked.has(key)) continue
    asked.set(key, signal)
    void ask(manager, taskId, question, context, _meta)
  }
}

async function ask(
  manager: AsyncTaskManager,
  taskId: string,
  question: TaskQuestion,
  { mcpReq }: ServerContext,
  _meta: AskOptions['_meta'],
): Promise<void> {
  const withdrawn = new AbortController()
  const subscription = manager.questions$.subscribe((event) => {
    if (event.taskId === taskId && !event.questions.some(({ id }) => id === question.id)) withdrawn.abort()
  })
  const { method, params } = formOf(question)
  // No other answer asks it meanwhile.
  const lease = manager.lease({ taskIds: [], questions: [{ taskId, questionId: question.id }] })
  try {
    const signal = AbortSignal.any([mcpReq.signal, withdrawn.signal])
    const answer = await mcpReq.send({ method, params: { ...params, _meta } }, { signal, timeout: MAX_TIMER_MS })
    manager.answerTask(taskId, question.id, answerTo(question, answer))
    lease?.acknowledge()
  } catch {
    // The model can still answer it with answer_async_task.
    lease?.release()
  } finally {
    subscription.unsubscribe()
  }
}

/** A request has ended: another one may ask what it has asked. */
export function forgetAsked(asked: AskedQuestions, { mcpReq: { signal } }: ServerContext): void {
  for (const [key, by] of asked) if (by === signal) asked.delete(key)
}
