/** Two ways to run a task for a call: in the background, or in place. In place means that the call waits for the task and returns its result. */
import { defined } from '../defined.js'
import type { FlatRunner } from '../engine/runner.js'
import type { ActiveTaskInfo, AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { cancellationText, reasonOfAbort } from '../async-tasks/cancel-reason.js'
import { isTerminal } from '../../machines/task-entry.js'
import { maxWholeChars } from '../async-tasks/output/bounded-text.js'
import { leaveInBackground } from '../async-tasks/detaching.js'
import { waitText } from '../async-tasks/named-slots/limit-text.js'
import { pausedText } from '../async-tasks/pausing/pause-texts.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import type { WordedWaitOptions } from '../async-tasks/waiting.js'
import { FamilyError, limitReason, PausedError, ReservationError, TaskLimitError } from '../errors.js'
import { cutText } from '../text/cut-text.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { markAsked, shownDelivery, wordEnds } from './shown-texts.js'
import { howToAnswer } from './task-answer.js'
import type { EffectiveTimeout } from './task-timeout.js'
import { eitherSignal, type FollowUps, type ForegroundAbort } from './task-tool-options.js'
import { checkStored, untilStored } from './stored-launch.js'
import { errorResult, type ToolContext, type ToolResult } from './tool.js'

/** One call of a tool that runs a task. */
export interface TaskCall {
  readonly manager: AsyncTaskManager
  readonly input: LaunchTaskInput
  readonly timeout: EffectiveTimeout
  readonly followUps: Required<FollowUps>
  /** The maximum length of a result's text, in characters. */
  readonly maxChars: number
  readonly context: ToolContext
  /** The time after which the call stops waiting, in seconds. The task then continues in the background. */
  readonly backgroundAfterSeconds: number | undefined
  /** See `ForegroundOptions`. */
  readonly onForegroundAbort: ForegroundAbort | undefined
}

/** The maximum time that a slot is reserved while a subagent is looked up, in ms. When the lookup ends, the reservation ends, too. */
const LOOKUP_MS = 60_000

/**
 * Reserves a slot, looks up what to run, launches the task, and returns at once. If no slot is free, the task waits in the queue, or is refused if it
 * cannot.
 * @param findRunner returns what to launch, or the result to return when there is nothing to launch; rejects when the call is aborted
 */
export async function runInBackground(
  call: TaskCall,
  findRunner: () => Promise<FlatRunner | ToolResult>,
): Promise<ToolResult> {
  const { manager } = call
  if (call.input.parentId !== undefined) return runChild(call, findRunner)
  // A task that waits for other tasks or for a key, or whose owner is paused, takes no slot at first. So a slot need not be free.
  const isHeld = call.input.after !== undefined || call.input.concurrencyKey !== undefined || isPaused(call)
  const ttlMs = Math.min(LOOKUP_MS, call.input.timeoutMs ?? Infinity)
  const reservationId = isHeld ? null : manager.tryReserveAsyncSlot({ ttlMs })
  if (reservationId === null && !isHeld && !manager.canQueue()) return limitRefusal(manager, call.followUps)
  try {
    const found = await findRunner()
    if (!('run' in found)) return found
    return await backgroundResult(call, launchInSlot(call, found, reservationId))
  } catch (error) {
    if (error instanceof TaskLimitError) return limitRefusal(manager, call.followUps, error.message)
    throw error
  } finally {
    if (reservationId !== null) manager.cancelReservation(reservationId)
  }
}

const isPaused = ({ manager, input }: TaskCall): boolean => manager.reads.pauses.concern(input.owner ?? DEFAULT_OWNER)

async function backgroundResult({ manager, timeout }: TaskCall, task: ActiveTaskInfo): Promise<ToolResult> {
  const what = `subagent '${task.subagentName}' (ID: ${task.id}).`
  const result =
    task.status === 'queued' ? queuedResult(manager, task, timeout, what) : launchedResult(task, timeout, what)
  await untilStored(manager, task.id)
  return result
}

/** Launches a child task. Children take another kind of slot, which cannot be reserved. If there is none, only the lookup was in vain. */
async function runChild(call: TaskCall, findRunner: () => Promise<FlatRunner | ToolResult>): Promise<ToolResult> {
  const runner = await findRunner()
  if (!('run' in runner)) return runner
  try {
    return await backgroundResult(call, call.manager.launch(call.input, runner))
  } catch (error) {
    if (error instanceof TaskLimitError || error instanceof FamilyError) {
      return errorResult('limit_reached', error.message)
    }
    throw error
  }
}

function launchInSlot({ manager, input }: TaskCall, runner: FlatRunner, reservationId: string | null): ActiveTaskInfo {
  if (reservationId === null) return manager.launch(input, runner)
  try {
    return manager.launch(input, runner, reservationId)
  } catch (error) {
    // The reservation has expired during the lookup, so the task is launched without it.
    if (error instanceof ReservationError) return manager.launch(input, runner)
    throw error
  }
}

/** The result of a call whose task must wait: for a slot, for other tasks, for a key, or until a person resumes background tasks. */
export function queuedResult(
  manager: AsyncTaskManager,
  task: ActiveTaskInfo,
  timeout: EffectiveTimeout,
  what: string,
): ToolResult {
  const queuePosition = manager.queuePosition(task.id)
  // The launch fails immediately if a task that it should wait for has already failed.
  const { error } = manager.getTask(task.id) ?? {}
  const waits = waitText(manager.reads, task)
  const why =
    waits !== undefined
      ? `It ${waits}`
      : pausedText(manager.reads, task)
        ? 'Background tasks are paused: it waits until a person resumes them'
        : `No slot is free: it is number ${queuePosition} in the queue`
  const text =
    error === undefined
      ? `Async task queued: ${what} ${why}, and starts by itself. Use 'check_async_tasks' to monitor progress.`
      : `Async task launched: ${what} It has failed: ${error}`
  return {
    llmContent: withNote(text, timeout),
    returnDisplay: `Async task ${error === undefined ? 'queued' : 'failed'}: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: {
      ...taskMetadata(manager.getTask(task.id) ?? task, timeout, true),
      ...defined({ queuePosition, waitsFor: task.waitsFor }),
    },
  }
}

/**
 * The result of a call that launched a task.
 * @param what the launched work, as text
 * @param metadata additional fields of the metadata
 */
export function launchedResult(
  task: ActiveTaskInfo,
  timeout: EffectiveTimeout,
  what: string,
  metadata?: Readonly<Record<string, unknown>>,
): ToolResult {
  const text =
    `Async task launched: ${what} Task is running in background. ` + `Use 'check_async_tasks' to monitor progress.`
  return {
    llmContent: withNote(text, timeout),
    returnDisplay: `Async task started: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: { ...taskMetadata(task, timeout, true), ...metadata },
  }
}

/** The result of a call whose task could not be launched, because no slot is free. */
export function limitRefusal(manager: AsyncTaskManager, { cancel }: FollowUps, refusal?: string): ToolResult {
  const reason = refusal ?? manager.canLaunchAsync().reason ?? 'No slot is free'
  if (manager.reads.isDisposed) {
    return errorResult('execution_failed', reason, { llmContent: `${reason}. It takes no new tasks.` })
  }
  const max = manager.getMaxAsyncTasks()
  const advice =
    max === 0
      ? 'Run the task synchronously (async: false).'
      : `Wait until one has ended (wait_for_async_tasks), cancel one (${cancel}), or run ` +
        'this one synchronously (async: false).'
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}

/** The result of a call that cannot wait for its task, because the owner is paused or too many such calls are running; undefined if it can. */
export function foregroundRefusal({ reads }: AsyncTaskManager, owner = DEFAULT_OWNER): ToolResult | undefined {
  if (reads.pauses.concern(owner)) return pausedRefusal(new PausedError(owner))
  const { isDisposed } = reads
  const { foreground } = reads.pools
  return foreground.hasRoom() || isDisposed ? undefined : foregroundLimit(foreground.max)
}

/**
 * The result of a call in place whose launch failed.
 * @throws the error, unless a limit or a pause was the reason
 */
export function refusedInPlace(error: unknown): ToolResult {
  if (error instanceof PausedError) return pausedRefusal(error)
  if (error instanceof TaskLimitError) return foregroundLimit(error.maxAsyncTasks)
  throw error
}

export const pausedRefusal = (
  { message }: PausedError,
  advice = 'Run it with async: true: it starts when a person resumes them.',
): ToolResult => errorResult('paused', message, { llmContent: `Background tasks are paused. ${advice}` })

/** The result of a call in place when too many such calls are running. */
export function foregroundLimit(max: number): ToolResult {
  const reason = limitReason(max, undefined, 'foreground')
  const advice = 'Wait until one of these calls has returned, or run this one in the background (async: true).'
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}

/**
 * Runs a task in place: waits for the task and returns its result. The task has an id and a deadline like any other task. It takes no slot, unless it is
 * a command. Its result is delivered only by this call.
 *
 * The task continues in the background if a person moves it there, if its run asks a question, if the call reaches its time limit, or if nobody can
 * receive the result of the call any more.
 */
export async function runInPlace(call: TaskCall, runner: FlatRunner): Promise<ToolResult> {
  const { manager, onForegroundAbort = 'cancel' } = call
  const { signal, detach, hold, onUpdate, asker } = call.context
  const leaving = onForegroundAbort === 'keep' ? eitherSignal(signal, detach) : detach
  let text = ''
  const noteChars = withNote('', call.timeout).length + LEFT_CHARS
  const limits = {
    maxChars: call.maxChars,
    room: maxWholeChars(call.maxChars) - noteChars,
    readWith: call.followUps.read,
    // The call itself says which task it is about.
    around: 'nothing' as const,
  }
  const waiting: WordedWaitOptions = {
    onSettled: (ended) => {
      const { shown, texts } = wordEnds(manager, ended, limits)
      text = texts.join('\n\n')
      return shown
    },
    endsOnQuestion: true,
    endsInBackground: true,
    asker,
    hold,
    ...defined({ signal: leaving }),
    ...(call.backgroundAfterSeconds !== undefined && { timeoutMs: call.backgroundAfterSeconds * 1000 }),
  }
  // The launch and the wait are one change. So even the result of a task that ends at once is delivered only by this call.
  const { id, end, updates } = manager.reads.batch(() => {
    const task = manager.launch({ ...call.input, isForeground: true }, runner)
    const updates =
      onUpdate && manager.output$(task.id).subscribe(({ text: written, cursor }) => onUpdate({ text: written, cursor }))
    return { id: task.id, end: manager.waitFor([task.id], waiting), updates }
  })
  call.context.onLaunched?.(id)
  const cancelOnAbort = onForegroundAbort === 'cancel' ? signal : undefined
  const onAbort = (): void => {
    manager.cancelTask(id, { reason: cancelOnAbort && reasonOfAbort(cancelOnAbort) })
  }
  cancelOnAbort?.addEventListener('abort', onAbort, { once: true })
  if (cancelOnAbort?.aborted === true) onAbort()
  try {
    const { settled, pending, deliveryId } = await end
    const [task] = settled
    if (task !== undefined) return finished(call, task, text, deliveryId)
    // The model can answer the question only after this call has returned. So the task continues in the background, and its result is delivered later.
    const [running] = pending
    if (running?.questions !== undefined) return await askingInBackground(call, running)
    return running === undefined || manager.reads.isDisposed
      ? errorResult('execution_failed', `Task ${id} was given up before it ended.`)
      : continuedInBackground(call, running)
  } catch (error) {
    checkStored(manager, id)
    if (leaving?.aborted !== true) throw error
    if (detach?.aborted !== true) return keptInBackground(call, id)
    return errorResult('aborted', `Task ${id} continues in the background: nobody can receive the result of this call.`)
  } finally {
    leaveInBackground(manager, id)
    updates?.unsubscribe()
    cancelOnAbort?.removeEventListener('abort', onAbort)
  }
}

async function askingInBackground(call: TaskCall, task: AsyncTaskInfo): Promise<ToolResult> {
  await markAsked({ manager: call.manager, hold: call.context.hold }, [task])
  const text = `Task ${task.id} has not ended: it waits for an answer, and continues in the background.\n${howToAnswer(task, call.followUps)}`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Task waits for an answer: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(task, call.timeout, true),
  }
}

function keptInBackground({ manager, timeout }: TaskCall, id: string): ToolResult {
  const task = manager.getTask(id)
  const live = manager.getAllTasks().filter((each) => each.parentId === id && !isTerminal(each)).length
  const family = live === 0 ? '' : ` with the ${live} task(s) that it has launched`
  const text = `The call was aborted. Task ${id} continues in the background${family}, and its result will be delivered.`
  return errorResult('aborted', text, { ...(task && { metadata: taskMetadata(task, timeout, true) }) })
}

function continuedInBackground(call: TaskCall, task: AsyncTaskInfo): ToolResult {
  const why =
    task.isForeground === true
      ? `has not ended within ${call.backgroundAfterSeconds ?? 0} s: it continues in the background`
      : 'continues in the background: it was moved there while this call waited for it'
  const text = `Task ${task.id} ${why}. wait_for_async_tasks waits for its result, and check_async_tasks shows its progress.`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Task continues in the background: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(task, call.timeout, true),
  }
}

function finished(call: TaskCall, task: SettledTaskInfo, text: string, deliveryId: string | undefined): ToolResult {
  const { id, subagentName, status } = task
  const more: unknown = task.output?.final_message ?? task.error
  const display = `Task ${status}: **${subagentName}** (\`${id}\`)${typeof more === 'string' ? `\n\n${cutText(more, call.maxChars)}` : ''}`
  const worded = isWorded(call, task) ? `${text}\n${cancellation(call, task)}` : text
  const result = {
    llmContent: withNote(`${worded}${leftText(task)}`, call.timeout),
    returnDisplay: cutText(display, call.maxChars),
    metadata: {
      ...taskMetadata(task, call.timeout, false),
      ...defined({ exitCode: task.exitCode, endedProcesses: task.endedProcesses }),
      ...shownDelivery([task], deliveryId),
    },
  }
  if (task.status === 'failed') return { ...result, error: { message: task.error, type: 'execution_failed' } }
  return task.status === 'cancelled'
    ? { ...result, error: { message: cancellation(call, task), type: 'cancelled' } }
    : result
}

/**
 * Whether the text must explain a cancellation: if the abort of this call was not the cause, if there is a reason, or if other tasks were cancelled,
 * too.
 */
function isWorded({ manager, context }: TaskCall, { id, status, cancelReason }: SettledTaskInfo): boolean {
  if (manager.reads.isDisposed) return true
  if (status !== 'cancelled' || context.signal?.aborted !== true) return false
  return cancelReason !== undefined || cancelledWith(manager, id) !== ''
}

function cancellation({ manager, context }: TaskCall, { id, cancelReason }: SettledTaskInfo): string {
  if (manager.reads.isDisposed) return `Task ${id} was cancelled, because the task manager was disposed.`
  const isAborted = context.signal?.aborted === true
  if (isAborted && cancelReason === undefined) {
    return `Task ${id} was cancelled, because its call was aborted.${cancelledWith(manager, id)}`
  }
  const sentence = cancellationText(`Task ${id}`, { cancelReason })
  const family = isAborted ? cancelledWith(manager, id) : ''
  return family === '' || /[.!?]$/.test(sentence) ? `${sentence}${family}` : `${sentence}.${family}`
}

function taskMetadata(
  { id, status }: AsyncTaskInfo,
  { seconds, requested }: EffectiveTimeout,
  isAsync: boolean,
): Record<string, unknown> {
  return {
    agentId: id,
    async: isAsync,
    status,
    effectiveTimeoutSeconds: seconds,
    ...(requested !== undefined && { timeoutClamped: true, requestedTimeoutSeconds: requested }),
  }
}

/** The maximum length of the text about processes that still ran when a command had ended, in characters. */
const LEFT_CHARS = 150

/** The text about processes that still ran when a command had ended. */
function leftText({ endedProcesses }: AsyncTaskInfo): string {
  if (endedProcesses === undefined) return ''
  const what =
    endedProcesses === 1 ? '1 process that it had left was' : `${endedProcesses} processes that it had left were`
  return `\n\n${what} ended with it: what must go on runs with async: true.`
}

function withNote(text: string, { note }: EffectiveTimeout): string {
  return note === undefined ? text : `${text}\n\n${note}`
}

/** A text about the child tasks that were cancelled together with this task; `''` if there are none. */
function cancelledWith(manager: AsyncTaskManager, id: string): string {
  const children = manager.getAllTasks().filter(({ parentId, status }) => parentId === id && status === 'cancelled')
  return children.length === 0 ? '' : ` ${children.length} task(s) that it had launched were cancelled, too.`
}
