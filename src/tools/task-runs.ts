/** Two ways to run a task for a call: in the background, or in place. In place means that the call waits for the task and returns its result. */
import { omitUndefined } from '../data/omit-undefined.js'
import type { ResolvedRunner } from '../engine/runner.js'
import { ownerOfRun } from '../../machines/run-owner.js'
import type { ActiveTaskInfo, AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { cancellationText, reasonOfAbort } from '../async-tasks/cancel-reason.js'
import { isTerminal, isUndelivered } from '../../machines/task-entry.js'
import { maxWholeChars } from '../features/output/bounded-text.js'
import { turnLaunches } from '../features/kept-turns/turn-launches.js'
import { leaveInBackground } from '../features/foreground/detaching.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { pendingLaunches } from '../async-tasks/pending-launches.js'
import type { WordedWaitOptions } from '../async-tasks/waiting.js'
import {
  FamilyError,
  limitReason,
  PausedError,
  type AgentTasksError,
  ReservationError,
  TaskLimitError,
} from '../errors.js'
import { cutText } from '../data/cut-text.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { markAsked, shownDelivery, wordEnds } from './shown-texts.js'
import { receiverOf } from './call-leases.js'
import { howToAnswer } from './task-answer.js'
import type { EffectiveTimeout } from './task-timeout.js'
import { eitherSignal, type FollowUps, type ForegroundAbort } from './task-tool-options.js'
import { checkStored, untilStored } from './stored-launch.js'
import { errorResult, type ToolContext, type ToolResult } from './tool.js'
import { endedAs, isWaiting, wasStopped } from '../../machines/task-status.js'

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
  readonly onForegroundAbort: ForegroundAbort
}

/** The maximum time that a slot is reserved while a subagent is looked up, in ms. When the lookup ends, the reservation ends, too. */
const LOOKUP_MS = 60_000

/**
 * Reserves a slot, looks up what to run, launches the task, and returns at once. If no slot is free, the task waits in the queue, or is refused if it
 * cannot.
 * @param findRunner returns what to launch, or the result to return when there is nothing to launch; rejects when the call is aborted
 */
export function runInBackground(
  call: TaskCall,
  findRunner: () => Promise<ResolvedRunner | ToolResult>,
): Promise<ToolResult> {
  const { parentId, owner = DEFAULT_OWNER } = call.input
  const isChild = parentId !== undefined
  const launch = isChild ? runChild(call, findRunner) : runInSlot(call, findRunner)
  return call.manager.reads.use(pendingLaunches).track(isChild ? ownerOfRun(parentId) : owner, launch)
}

async function runInSlot(call: TaskCall, findRunner: () => Promise<ResolvedRunner | ToolResult>): Promise<ToolResult> {
  const { manager } = call
  // A task that waits for other tasks or for a key, or whose owner is held, takes no slot at first. So a slot need not be free. Nor need it be for a task
  // that exists, because a turn that was lost has launched it.
  const isHeld =
    call.input.after !== undefined ||
    call.input.concurrencyKey !== undefined ||
    isOwnerHeld(call) ||
    manager.reads.use(turnLaunches).has(call.input)
  const ttlMs = Math.min(LOOKUP_MS, call.input.timeoutMs ?? Infinity)
  const reservationId = isHeld ? null : manager.tryReserveAsyncSlot({ ttlMs, owner: ownerOf(call) })
  if (reservationId === null && !isHeld && !manager.canQueue()) {
    return limitRefusal(manager, call.followUps, ownerOf(call))
  }
  try {
    const found = await findRunner()
    if (!('run' in found)) return found
    return await backgroundResult(call, launchInSlot(call, found, reservationId))
  } catch (error) {
    if (error instanceof TaskLimitError) return limitRefusal(manager, call.followUps, ownerOf(call), error.message)
    throw error
  } finally {
    if (reservationId !== null) manager.cancelReservation(reservationId)
  }
}

const ownerOf = ({ input }: TaskCall): string => input.owner ?? DEFAULT_OWNER

const isOwnerHeld = (call: TaskCall): boolean => call.manager.reads.ownerHold(ownerOf(call)) !== undefined

async function backgroundResult({ manager, timeout, followUps }: TaskCall, task: ActiveTaskInfo): Promise<ToolResult> {
  const result = backgroundResultOf(
    { manager, timeout, followUps },
    task,
    `subagent '${task.subagentName}' (ID: ${task.id}).`,
  )
  await untilStored(manager, task.id)
  return result
}

/**
 * The result of a call in the background.
 * @param task what was launched. It may have ended if a lost turn has launched it
 * @param what the launched work, as text
 */
export function backgroundResultOf(
  { manager, timeout, followUps }: Pick<TaskCall, 'manager' | 'timeout' | 'followUps'>,
  task: AsyncTaskInfo,
  what: string,
): ToolResult {
  if (isTerminal(task)) return endedResult(task, timeout, what)
  return isWaiting(task.status)
    ? queuedResult(manager, task, timeout, what, followUps)
    : launchedResult(task, timeout, what, followUps)
}

function endedResult(task: SettledTaskInfo, timeout: EffectiveTimeout, what: string): ToolResult {
  const end = endedAs(task, 'failed') ? `It has failed: ${task.error}` : 'It has ended.'
  const result = `Its result ${isUndelivered(task) ? 'is in a message to you' : 'was delivered'}.`
  return {
    llmContent: withNote(`Async task launched: ${what} ${end} ${result}`, timeout),
    returnDisplay: `Async task ${task.status}: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(task, timeout, true),
  }
}

/** Launches a child task. Children take another kind of slot, which cannot be reserved. If there is none, only the lookup was in vain. */
async function runChild(call: TaskCall, findRunner: () => Promise<ResolvedRunner | ToolResult>): Promise<ToolResult> {
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

function launchInSlot(
  { manager, input }: TaskCall,
  runner: ResolvedRunner,
  reservationId: string | null,
): ActiveTaskInfo {
  if (reservationId === null) return manager.launch(input, runner)
  try {
    return manager.launch(input, runner, reservationId)
  } catch (error) {
    // The reservation has expired during the lookup, so the task is launched without it.
    if (error instanceof ReservationError) return manager.launch(input, runner)
    throw error
  }
}

/** The result of a call whose task must wait, for example for a slot or for other tasks. */
function queuedResult(
  manager: AsyncTaskManager,
  task: ActiveTaskInfo,
  timeout: EffectiveTimeout,
  what: string,
  { arrival }: Required<FollowUps>,
): ToolResult {
  const queuePosition = manager.queuePosition(task.id)
  // The launch fails immediately if a task that it should wait for has already failed.
  const { error } = manager.getTask(task.id) ?? {}
  const { own, ofOwner } = manager.reads.waitReasons(task)
  const why =
    own === undefined
      ? (ofOwner?.sentence ?? `No slot is free: it is number ${queuePosition} in the queue`)
      : `It ${own.text}`
  const text =
    error === undefined
      ? `Async task queued: ${what} ${why}, and starts by itself. ${arrival}`
      : `Async task launched: ${what} It has failed: ${error}`
  return {
    llmContent: withNote(text, timeout),
    returnDisplay: `Async task ${error === undefined ? 'queued' : 'failed'}: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: {
      ...taskMetadata(manager.getTask(task.id) ?? task, timeout, true),
      ...omitUndefined({ queuePosition, waitsFor: task.waitsFor }),
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
  { arrival }: Required<FollowUps>,
  metadata?: Readonly<Record<string, unknown>>,
): ToolResult {
  const text = `Async task launched: ${what} Task is running in background. ${arrival}`
  return {
    llmContent: withNote(text, timeout),
    returnDisplay: `Async task started: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: { ...taskMetadata(task, timeout, true), ...metadata },
  }
}

/** The result of a call whose task could not be launched, because no slot is free. */
export function limitRefusal(
  manager: AsyncTaskManager,
  { cancel }: FollowUps,
  owner: string,
  refusal?: string,
): ToolResult {
  const reason = refusal ?? manager.canLaunchAsync(owner).reason ?? 'No slot is free'
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

/** The result of a call that cannot wait for its task, because the owner is held or too many such calls are running; undefined if it can. */
export function foregroundRefusal({ reads }: AsyncTaskManager, owner = DEFAULT_OWNER): ToolResult | undefined {
  const hold = reads.ownerHold(owner)
  if (hold !== undefined) return heldRefusal(hold.refusal())
  const { isDisposed } = reads
  const { foreground } = reads.pools
  return foreground.hasRoom() || isDisposed ? undefined : foregroundLimit(foreground.max)
}

/**
 * The result of a call in place whose launch failed.
 * @throws the error, unless a limit or a hold was the reason
 */
export function refusedInPlace(error: unknown): ToolResult {
  if (error instanceof PausedError) return heldRefusal(error)
  if (error instanceof TaskLimitError) {
    return error.owner === undefined
      ? foregroundLimit(error.maxAsyncTasks)
      : refusalOf(error.message, error.maxAsyncTasks)
  }
  throw error
}

export const heldRefusal = (
  { message }: AgentTasksError,
  advice = 'Run it with async: true: it starts when a person resumes them.',
): ToolResult => errorResult('paused', message, { llmContent: `Background tasks are paused. ${advice}` })

/** The result of a call in place when too many such calls are running. */
export function foregroundLimit(max: number): ToolResult {
  return refusalOf(limitReason(max, undefined, 'foreground'), max)
}

function refusalOf(reason: string, max: number): ToolResult {
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
export function runInPlace(call: TaskCall, runner: ResolvedRunner): Promise<ToolResult> {
  // A command or a call of a tool is made again when its turn is.
  const launched = runner.isBound === true ? undefined : call.manager.reads.use(turnLaunches).take(call.input)
  if (launched !== undefined) return rejoinInPlace(call, launched.record.id)
  return waitInPlace(call, () => call.manager.launch({ ...call.input, isForeground: true }, runner).id)
}

type WaitingCall = Omit<TaskCall, 'input'>

/**
 * Waits for a task that an earlier call ran in place and left in the background, because the run asked a question. The result is as if this call had
 * launched the task, which stays in the background.
 */
export async function rejoinInPlace(call: Omit<WaitingCall, 'timeout'>, id: string): Promise<ToolResult> {
  const task = call.manager.getTask(id)
  if (task === undefined || (isTerminal(task) && !isUndelivered(task))) {
    const text = `Task ${id} has ended, and its result was delivered.`
    return { llmContent: text, returnDisplay: text, metadata: { agentId: id } }
  }
  const { timeoutMs } = task
  const timeout = { seconds: timeoutMs === undefined ? -1 : timeoutMs / 1000 }
  return waitInPlace({ ...call, timeout }, () => id, { isRejoined: true })
}

/** @param begin returns the id of the task to wait for, which it may launch */
async function waitInPlace(call: WaitingCall, begin: () => string, { isRejoined = false } = {}): Promise<ToolResult> {
  const { manager, onForegroundAbort } = call
  const { signal, detach, onUpdate, asker } = call.context
  const hold = receiverOf(call.context.hold)
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
    endsInBackground: !isRejoined,
    asker,
    hold,
    ...omitUndefined({ signal: leaving }),
    ...(call.backgroundAfterSeconds !== undefined && { timeoutMs: call.backgroundAfterSeconds * 1000 }),
  }
  // The launch and the wait are one change. So even the result of a task that ends at once is delivered only by this call.
  const { id, end, updates } = manager.reads.batch(() => {
    const taskId = begin()
    const updates =
      onUpdate && manager.output$(taskId).subscribe(({ text: written, cursor }) => onUpdate({ text: written, cursor }))
    return { id: taskId, end: manager.waitFor([taskId], waiting), updates }
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
    if (running !== undefined && !manager.reads.isDisposed) return continuedInBackground(call, running, isRejoined)
    const what = isKept(manager) ? keptText(`Task ${id} has not ended`) : `Task ${id} was given up before it ended.`
    return errorResult('execution_failed', what)
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

/** Whether the manager was disposed and its store keeps the active tasks. */
export const isKept = ({ reads }: AsyncTaskManager): boolean => reads.isDisposed && reads.persistence !== undefined

/** Says that the host is closing, and what becomes of a task that has not ended. */
export const keptText = (what: string): string =>
  `${what}, and this host is closing. When it runs again, it goes on with the task or reports its end. Do not launch it again.`

async function askingInBackground(call: WaitingCall, task: AsyncTaskInfo): Promise<ToolResult> {
  await markAsked({ manager: call.manager, hold: receiverOf(call.context.hold) }, [task])
  const text = `Task ${task.id} has not ended: it waits for an answer, and continues in the background.\n${howToAnswer(task, call.followUps)}`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Task waits for an answer: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(task, call.timeout, true),
  }
}

function keptInBackground({ manager, timeout }: WaitingCall, id: string): ToolResult {
  const task = manager.getTask(id)
  const live = manager.getAllTasks().filter((each) => each.parentId === id && !isTerminal(each)).length
  const family = live === 0 ? '' : ` with the ${live} task(s) that it has launched`
  const text = `The call was aborted. Task ${id} continues in the background${family}, and its result will be delivered.`
  return errorResult('aborted', text, { ...(task && { metadata: taskMetadata(task, timeout, true) }) })
}

function continuedInBackground(call: WaitingCall, task: AsyncTaskInfo, isRejoined: boolean): ToolResult {
  const why =
    task.isForeground === true || isRejoined
      ? `has not ended within ${call.backgroundAfterSeconds ?? 0} s: it continues in the background`
      : 'continues in the background: it was moved there while this call waited for it'
  const text = `Task ${task.id} ${why}. ${call.followUps.arrival}`
  return {
    llmContent: withNote(text, call.timeout),
    returnDisplay: `Task continues in the background: **${task.subagentName}** (\`${task.id}\`)`,
    metadata: taskMetadata(task, call.timeout, true),
  }
}

function finished(call: WaitingCall, task: SettledTaskInfo, text: string, deliveryId: string | undefined): ToolResult {
  const { id, subagentName, status } = task
  const more: unknown = task.output?.final_message ?? task.error
  const display = `Task ${status}: **${subagentName}** (\`${id}\`)${typeof more === 'string' ? `\n\n${cutText(more, call.maxChars)}` : ''}`
  const worded = isWorded(call, task) ? `${text}\n${cancellation(call, task)}` : text
  const result = {
    llmContent: withNote(`${worded}${leftText(task)}`, call.timeout),
    returnDisplay: cutText(display, call.maxChars),
    metadata: {
      ...taskMetadata(task, call.timeout, false),
      ...omitUndefined({ exitCode: task.exitCode, endedProcesses: task.endedProcesses }),
      ...shownDelivery([task], deliveryId),
    },
  }
  if (endedAs(task, 'succeeded')) return result
  const error = endedAs(task, 'failed')
    ? ({ message: task.error, type: 'execution_failed' } as const)
    : ({ message: cancellation(call, task), type: 'cancelled' } as const)
  return { ...result, error }
}

/**
 * Whether the text must explain a cancellation: if the abort of this call was not the cause, if there is a reason, or if other tasks were cancelled,
 * too.
 */
function isWorded({ manager, context }: WaitingCall, { id, status, cancelReason }: SettledTaskInfo): boolean {
  if (manager.reads.isDisposed) return true
  if (!wasStopped(status) || context.signal?.aborted !== true) return false
  return cancelReason !== undefined || cancelledWith(manager, id) !== ''
}

function cancellation({ manager, context }: WaitingCall, { id, cancelReason }: SettledTaskInfo): string {
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
  const children = manager.getAllTasks().filter(({ parentId, status }) => parentId === id && wasStopped(status))
  return children.length === 0 ? '' : ` ${children.length} task(s) that it had launched were cancelled, too.`
}
