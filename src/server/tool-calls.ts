/** `POST /api/tools/:name`: a call of a tool. The call becomes a task of one command, and is answered when the task has ended. */
import type { z } from 'zod'
import { clearLongTimeout, setLongTimeout, type Clock } from '../system/clock.js'
import { UNKNOWN_TOOL, unknownTool } from '../protocol/tool-calls.js'
import { unwrapResult } from '../protocol/tool-result.js'
import type { Task } from '../protocol/command-tasks.js'
import type { InstanceSummary, toolListSchema } from '../protocol/rest.js'
import { whenThere, type Eventually } from './backend/eventually.js'
import type { Hub } from './backend/hub.js'
import type { InstanceList } from './backend/instance-list.js'
import { whenAccepted, type PendingSubmission, type Submitted, type TaskService } from './backend/task-service.js'

export interface ToolCallOptions {
  readonly service: TaskService
  readonly hub: Hub
  readonly instances: InstanceList
  readonly clock: Clock
  /** How long a call may take, including its wait in the queue, in ms. */
  readonly limitMs: number
}

export interface ToolCallRequest {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** Default: the first connected instance that has the tool. */
  readonly instanceId: string | undefined
  /** Aborted when the caller has closed its connection. The task is then cancelled. */
  readonly signal: AbortSignal
  /** Runs the submission within the trace of the request. */
  readonly within: <T>(submit: () => T) => T
}

export interface ToolError {
  readonly code: string
  readonly message: string
}

type ToolOutcome =
  { readonly success: true; readonly result: unknown } | { readonly success: false; readonly error: ToolError }

/** The answer to a call. `taskId` is the id of the task, if one was submitted. */
export type ToolAnswer = ToolOutcome & { readonly taskId?: string }

export interface ToolCalls {
  call(request: ToolCallRequest): Promise<ToolAnswer>
  /** Cancels the calls whose tasks have not started. Otherwise a store would keep the tasks although nobody waits for them any more. Never rejects. */
  cancelQueued(): Promise<void>
}

type Accepted = Exclude<PendingSubmission, { error: string }>

const refused = ({ code, error }: Extract<Submitted, { error: string }>): ToolAnswer => ({
  success: false,
  error: { code, message: error },
})

type End = { readonly task: Eventually<Task | undefined> } | { readonly error: ToolError }

export function createToolCalls({ service, hub, instances, clock, limitMs }: ToolCallOptions): ToolCalls {
  const waiting = new Set<string>()

  async function call(request: ToolCallRequest): Promise<ToolAnswer> {
    const { name, args, signal } = request
    const target = request.instanceId ?? findInstance(name, await instances.read())
    if (typeof target !== 'string') return { success: false, error: target }
    if (signal.aborted) return { success: false, error: CALLER_LEFT }
    const submission = { task_name: name, instanceId: target, commands: [{ tool_name: name, args: { ...args } }] }
    // Subscribes in the same tick in which the task is accepted, so that the end of the task cannot be missed.
    return whenThere<PendingSubmission, ToolAnswer>(
      request.within(() => service.submit({ type: 'task_submit', ...submission })),
      (submitted) => ('error' in submitted ? refused(submitted) : waitFor(submitted, signal)),
    )
  }

  async function waitFor(submission: Accepted, signal: AbortSignal): Promise<ToolAnswer> {
    const { taskId } = submission
    let end: (how: End) => void = () => undefined
    const ended = new Promise<End>((resolve) => (end = resolve))
    const subscriptions = hub.join(
      // Reads the task now, because the server may forget it after its last event.
      (event) => event.isComplete && end({ task: service.get(taskId) }),
      1,
      () => end({ error: EVENTS_MISSED }),
    )
    const giveUp = (error: ToolError): void => {
      // The call is answered before the task is cancelled, because a cancellation may take long in a cluster that is unavailable.
      end({ error })
      void Promise.resolve(service.cancel(taskId)).catch(() => undefined)
    }
    const leave = (): void => giveUp(CALLER_LEFT)
    const timer = setLongTimeout(clock, () => giveUp(tooLong(limitMs)), limitMs)
    waiting.add(taskId)
    signal.addEventListener('abort', leave)
    try {
      subscriptions.addTask(taskId, 0)
      const submitted = await whenAccepted(submission)
      if ('error' in submitted) return refused(submitted)
      if (signal.aborted) leave()
      const how = await ended
      const outcome: ToolOutcome = 'error' in how ? { success: false, ...how } : outcomeOf(await how.task)
      return { ...outcome, taskId }
    } finally {
      signal.removeEventListener('abort', leave)
      clearLongTimeout(clock, timer)
      waiting.delete(taskId)
      subscriptions.leave()
    }
  }

  async function cancelIfQueued(taskId: string): Promise<void> {
    const task = await service.get(taskId)
    if (task?.status === 'queued') await service.cancel(taskId)
  }

  return {
    call,
    cancelQueued: async () => {
      await Promise.allSettled(Array.from(waiting, cancelIfQueued))
    },
  }
}

const CALLER_LEFT: ToolError = { code: 'CANCELLED', message: 'The client closed the connection.' }
const EVENTS_MISSED: ToolError = {
  code: 'UNAVAILABLE',
  message: 'The end of the task may have been missed. GET /tasks/:id has its state.',
}
const tooLong = (limitMs: number): ToolError => ({
  code: 'TOOL_CALL_TIMEOUT',
  message: `The call did not end within ${limitMs} ms, including its wait in the queue (limits.toolCallMs). Its task was cancelled.`,
})

/** Returns the id of the first connected instance that has the tool, or else of one whose tools are unknown. */
function findInstance(name: string, listed: readonly InstanceSummary[]): string | ToolError {
  const connected = listed.filter(({ isConnected }) => isConnected)
  if (connected.length === 0) return { code: 'NO_INSTANCE', message: 'No instance is connected' }
  const found =
    connected.find(({ tools }) => tools?.some((tool) => tool.name === name)) ??
    connected.find(({ tools }) => tools === undefined)
  if (found !== undefined) return found.id
  const known = [...new Set(connected.flatMap(({ tools = [] }) => tools.map((tool) => tool.name)))]
  return { code: 'TOOL_NOT_FOUND', message: unknownTool(name, known) }
}

function outcomeOf(task: Task | undefined): ToolOutcome {
  const [command] = task?.commands ?? []
  if (task?.status === 'completed') return { success: true, result: unwrapResult(command?.result) }
  const { code, message } = command?.error ??
    task?.error ?? { code: 'TASK_NOT_FOUND', message: 'The task was removed before its result was read.' }
  return { success: false, error: { code: code === UNKNOWN_TOOL ? 'TOOL_NOT_FOUND' : code, message } }
}

/** The tools of the connected instances. A name that several instances have appears once, with the description of the first one. */
export function toolsOf(listed: readonly InstanceSummary[]): z.infer<typeof toolListSchema>['tools'] {
  const byName = new Map<string, z.infer<typeof toolListSchema>['tools'][number]>()
  for (const { id, isConnected, tools } of listed) {
    if (!isConnected) continue
    for (const tool of tools ?? []) {
      const known = byName.get(tool.name)
      if (known === undefined) byName.set(tool.name, { ...tool, instances: [id] })
      else known.instances.push(id)
    }
  }
  return [...byName.values()]
}
