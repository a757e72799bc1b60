/** The calls that a text tells the model to make next. */
import { aName, anObject, optionsOf, required } from '../../protocol/option-checks.js'

/** A tool, and the parameters that select one of its modes. Needed by hosts that offer it under another name. */
export interface FollowUpCall {
  /** The name of the tool. */
  readonly tool: string
  /** The parameters that select the mode, besides those of the call. */
  readonly params: Readonly<Record<string, unknown>>
}

export const aFollowUpCall = optionsOf<FollowUpCall>({ tool: required(aName), params: required(anObject) })

/** By default check_async_tasks takes answers. */
export const CHECK_ANSWERS: FollowUpCall = { tool: 'check_async_tasks', params: { action: 'answer' } }

/** By default check_async_tasks reads what a task has written, and its result. */
export const CHECK_READS: FollowUpCall = { tool: 'check_async_tasks', params: { action: 'output' } }

/** The call that reads the result of a task. */
export function resultCall(taskId: string, { tool, params }: FollowUpCall): FollowUpCall {
  return { tool, params: { task_id: taskId, ...params, part: 'result' } }
}

/** A call in words for a model. */
export function callText({ tool, params }: FollowUpCall, more: Readonly<Record<string, unknown>> = {}): string {
  return `${tool} ${JSON.stringify({ ...params, ...more })}`
}
