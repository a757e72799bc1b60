/** The tool calls that a text recommends to the model. */
import { aName, anObject, optionsOf, required } from '../../protocol/option-checks.js'

/** A tool, and the parameters that select what it does. For hosts that offer the tool under another name. */
export interface FollowUpCall {
  readonly tool: string
  /** The parameters that select what the tool does, such as `action`. */
  readonly params: Readonly<Record<string, unknown>>
}

export const aFollowUpCall = optionsOf<FollowUpCall>({ tool: required(aName), params: required(anObject) })

/** The default tool for answers. */
export const CHECK_ANSWERS: FollowUpCall = { tool: 'check_async_tasks', params: { action: 'answer' } }

/** The default tool for reading the output or result of a task. */
export const CHECK_READS: FollowUpCall = { tool: 'check_async_tasks', params: { action: 'output' } }

export function resultCall(taskId: string, { tool, params }: FollowUpCall): FollowUpCall {
  return { tool, params: { task_id: taskId, ...params, part: 'result' } }
}

/** Formats a call for a model, such as `check_async_tasks(...)`. */
export function callText({ tool, params }: FollowUpCall, more: Readonly<Record<string, unknown>> = {}): string {
  return `${tool} ${JSON.stringify({ ...params, ...more })}`
}
