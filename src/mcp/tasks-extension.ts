/**
 * The server side of the Tasks extension (SEP-2663). When the SDK has its own, it can replace this file and `tasks-extension-wire.ts`. A result with
 * `isError` makes a task `completed`; only a JSON-RPC error makes it `failed`.
 */
import { MissingRequiredClientCapabilityError, type Result, type ServerContext } from '@modelcontextprotocol/server'
import type { TaskQuestion } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Exchange } from './exchange.js'
import { answerTo, formOf, isForm } from './question-forms.js'
import type { TaskEnd, TaskHandle, TaskHandles } from './task-handles.js'
import {
  declaredBy,
  REQUIRED_CAPABILITIES,
  type DeclaredCapabilities,
  type WireDetails,
  type WireTask,
} from './tasks-extension-wire.js'

export interface TasksExtension {
  /** The answer to a call that became a task. */
  created(handle: TaskHandle): Result
  get(handle: TaskHandle, declared: DeclaredCapabilities, exchange: Exchange): Promise<Result>
  /** Answers questions of the task. If one answer is invalid, no answer is applied. */
  update(handle: TaskHandle, responses: Readonly<Record<string, unknown>>): Promise<Result>
  cancel(handle: TaskHandle): Promise<Result>
}

export function createTasksExtension(handles: TaskHandles, manager: AsyncTaskManager): TasksExtension {
  const questionsOf = ({ started }: TaskHandle) => manager.getTask(started.taskId)?.questions?.filter(isForm) ?? []
  const wireOf = (handle: TaskHandle): WireTask => {
    const { isAsking, ...state } = handles.stateOf(handle)
    const { end } = handle
    return { ...state, status: end === undefined ? (isAsking ? 'input_required' : 'working') : statusOf(end) }
  }
  /** Leases the questions for this answer. The client asks its user, so no other answer may carry the same questions. */
  const deliverQuestions = async (
    { started: { taskId } }: TaskHandle,
    questions: readonly TaskQuestion[],
    exchange: Exchange,
  ): Promise<void> => {
    const asked = questions.map(({ id: questionId }) => ({ taskId, questionId }))
    const lease = manager.lease({ taskIds: [], questions: asked })
    await lease?.stored
    if (lease !== undefined) exchange.onEnd((isWritten) => (isWritten ? lease.acknowledge() : lease.release()))
  }
  return {
    created: (handle) => ({ ...wireOf(handle), resultType: 'task' }),
    get: async (handle, { hasElicitation }, exchange) => {
      const task = wireOf(handle)
      if (handle.end !== undefined) {
        await handles.deliver(handle, exchange)
        return { ...task, ...detailsOf(handle.end), resultType: 'complete' }
      }
      if (task.status !== 'input_required') return { ...task, resultType: 'complete' }
      // Without elicitation the client cannot ask its user; the model can still answer with the tool answer_async_task.
      if (!hasElicitation) return { ...task, status: 'working', resultType: 'complete' }
      const questions = questionsOf(handle)
      await deliverQuestions(handle, questions, exchange)
      const inputRequests = Object.fromEntries(questions.map((question) => [question.id, formOf(question)]))
      return { ...task, inputRequests, resultType: 'complete' }
    },
    update: async (handle, responses) => {
      const answers = questionsOf(handle)
        .filter(({ id }) => Object.hasOwn(responses, id))
        .map((question) => ({ id: question.id, answer: answerTo(question, responses[question.id]) }))
      for (const { id, answer } of answers) manager.answerTask(handle.started.taskId, id, answer)
      // A failure of the store was already logged (`onError`).
      await manager.stored().catch(() => undefined)
      return ACKNOWLEDGEMENT
    },
    cancel: async ({ started: { taskId } }) => {
      manager.cancelTask(taskId)
      // A failure of the store was already logged (`onError`).
      await manager.stored().catch(() => undefined)
      return ACKNOWLEDGEMENT
    },
  }
}

const ACKNOWLEDGEMENT: Result = { resultType: 'complete' }

/** @throws MissingRequiredClientCapabilityError (-32021) unless the request declares the extension */
export function checkDeclared(context: ServerContext): DeclaredCapabilities {
  const declared = declaredBy(context)
  if (declared.hasTasks) return declared
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
}

function statusOf({ outcome: { type } }: TaskEnd): WireTask['status'] {
  if (type === 'cancelled') return 'cancelled'
  return type === 'error' ? 'failed' : 'completed'
}

function detailsOf({ outcome }: TaskEnd): WireDetails {
  if (outcome.type === 'cancelled') return {}
  // Since protocol version 2026-07-28, every result has `resultType`.
  if (outcome.type === 'result') return { result: { resultType: 'complete', ...outcome.result } }
  const { type: _type, ...error } = outcome
  return { error }
}
