/** The two ways in which the task tool runs a subagent: in the background, and in place. */
import type { AsyncTaskInfo, RunningTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { cutText } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Runner } from '../engine/runner.js'
import type { WordedWaitOptions } from '../async-tasks/waiting.js'
import { ReservationError, TaskLimitError } from '../errors.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { FollowUps } from './follow-ups.js'
import { wordEnds } from './shown-texts.js'
import { howToAnswer } from './task-answer.js'
import type { EffectiveTimeout } from './task-timeout.js'
import { errorResult, type ToolResult } from './tool.js'

/** What to run. */
export interface TaskCall {
  readonly manager: AsyncTaskManager
  readonly input: LaunchTaskInput
  readonly timeout: EffectiveTimeout
  readonly followUps: FollowUps
  /** The most a result says, in characters. */
  readonly maxChars: number
  readonly signal: AbortSignal | undefined
  /** Finds what runs; undefined for a subagent that does not exist. Rejects when the call is aborted. */
  readonly findRunner: () => Promise<Runner | undefined>
  readonly unknownSubagent: () => ToolResult
}

/** How long a slot is held for a subagent that is being looked up, in ms. It is given back when the look-up ends. */
const LOOK_UP_MS = 60_000

/** Launches in a slot that was free when the call came, and returns at once. */
export async function runInBackground(call: TaskCall): Promise<ToolResult> {
  const { manager } = call
  const reservationId = manager.tryReserveAsyncSlot({ ttlMs: LOOK_UP_MS })
  if (reservationId === null) return limitRefusal(manager, call.followUps)
  try {
    const runner = await call.findRunner()
    return runner === undefined ? call.unknownSubagent() : launched(call, launchInSlot(call, runner, reservationId))
  } catch (error) {
    if (error instanceof TaskLimitError) return limitRefusal(manager, call.followUps)
    throw error
  } finally {
    manager.cancelReservation(reservationId)
  }
}

function launchInSlot({ manager, input }: TaskCall, runner: Runner, reservationId: string): RunningTaskInfo {
  try {
    return manager.launch(input, runner, reservationId)
  } catch (error) {
    // A look-up that took longer than its slot was held takes its chance like any other.
    if (error instanceof ReservationError) return manager.launch(input, runner)
    throw error
  }
}

function launched(call: TaskCall, task: RunningTaskInfo): ToolResult {
  const { id, subagentName } = task
  const text =
    `Async task launched: subagent '${subagentName}' (ID: ${id}). Task is running in background. ` +
    `Use 'check_async_tasks' to monitor progress.`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Async task started: **${subagentName}** (\`${id}\`)`,
    metadata: taskMetadata(call, task, true),
  }
}

/** What a model is told when every slot is taken. */
export function limitRefusal(manager: AsyncTaskManager, { cancel }: FollowUps): ToolResult {
  const { reason = 'No slot is free' } = manager.canLaunchAsync()
  const max = manager.getMaxAsyncTasks()
  const advice =
    max === 0
      ? 'Run the task synchronously (async: false).'
      : `Wait until one has ended (wait_for_async_tasks), cancel one (${cancel}), or run ` +
        'this one synchronously (async: false).'
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}

/**
 * Runs in place and returns what the run returned. It is a task like any other, with a deadline and an id to cancel it
 * by, but it takes no slot, and its end is owed to nobody else. When its run asks something, it goes on in the background.
 */
export async function runInPlace(call: TaskCall): Promise<ToolResult> {
  const { manager, signal } = call
  const runner = await call.findRunner()
  if (runner === undefined) return call.unknownSubagent()
  let text = ''
  const waiting: WordedWaitOptions = {
    onSettled: (ended) => ([text = ''] = wordEnds(manager, ended, call.maxChars)),
    endsOnQuestion: true,
  }
  // Claimed in the step that launches it: whatever ends it, and however soon, the end comes here and nowhere else.
  const { id, end } = manager.registry.batch(() => {
    const task = manager.launch({ ...call.input, isForeground: true }, runner)
    return { id: task.id, end: manager.waitFor([task.id], waiting) }
  })
  const onAbort = (): void => {
    manager.cancelTask(id)
  }
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  try {
    const { settled, pending } = await end
    const [task] = settled
    if (task !== undefined) return finished(call, task, text)
    // Whoever waits for the call cannot answer meanwhile: the task goes on in the background, and its end is owed.
    const [asking] = pending
    return asking?.questions === undefined
      ? errorResult('execution_failed', `Task ${id} was given up before it ended.`)
      : askingInBackground(call, asking)
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

function askingInBackground(call: TaskCall, task: AsyncTaskInfo): ToolResult {
  const text = `Task ${task.id} has not ended: it waits for an answer, and goes on in the background.\n${howToAnswer(task, call.followUps)}`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Task waits for an answer: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(call, task, true),
  }
}

function finished(call: TaskCall, task: SettledTaskInfo, text: string): ToolResult {
  const { id, subagentName, status } = task
  const more: unknown = task.output?.final_message ?? task.error
  const display = `Task ${status}: **${subagentName}** (\`${id}\`)${typeof more === 'string' ? `\n\n${more}` : ''}`
  const result = {
    llmContent: withNote(text, call.timeout),
    returnDisplay: cutText(display, call.maxChars),
    metadata: taskMetadata(call, task, false),
  }
  if (task.status === 'failed') return { ...result, error: { message: task.error, type: 'execution_failed' } }
  return task.status === 'cancelled'
    ? { ...result, error: { message: `Task ${id} was cancelled.`, type: 'cancelled' } }
    : result
}

function taskMetadata(call: TaskCall, task: AsyncTaskInfo, isAsync: boolean): Record<string, unknown> {
  return {
    agentId: task.id,
    async: isAsync,
    status: task.status,
    effectiveTimeoutSeconds: call.timeout.seconds,
  }
}

function withNote(text: string, { note }: EffectiveTimeout): string {
  return note === undefined ? text : `${text}\n\n${note}`
}
