/** Makes the answer to a call of a tool: the task that the call became, or the result of the call together with undelivered results of other tasks. */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { describeFailure } from '../protocol/outcomes.js'
import { errorTypeOf, TOOL_ERROR, traceOf } from '../protocol/telemetry.js'
import { namedIn, type Caller } from './callers.js'
import { addImages, addNotes, addOwed, CarriedResults } from './carried-results.js'
import { imagesOf } from './command-images.js'
import type { Exchange } from './exchange.js'
import type { FormRound } from './form-rounds.js'
import type { McpApp } from './mcp-app.js'
import type { TaskGeneration } from './mcp-tasks.js'
import { isStarted, toToolResult, type McpCall, type McpResult, type McpTool, type StartedTask } from './mcp-tool.js'
import { reportProgress } from './progress.js'
import { markResult } from './result-marks.js'
import type { TaskProgress } from './task-progress.js'
import { startTask } from './tasks-2025.js'
import { declaredBy, REQUIRED_CAPABILITIES } from './tasks-extension-wire.js'

export interface Callee {
  readonly tool: McpTool
  readonly app: McpApp
  readonly caller: Caller
  /** Whether the client uses a protocol version of 2025. */
  readonly is2025: boolean
  readonly canAsk: boolean
  /** Whether the call asks for a task of 2025-11-25. */
  readonly asTask: boolean
  readonly taskProgress: TaskProgress
}

/** Answers a call. When the answer was written out, the results in it are delivered; otherwise they are owed again. */
export async function answerCall(
  callee: Callee,
  args: Readonly<Record<string, unknown>>,
  context: ServerContext,
  exchange: Exchange,
): Promise<Result> {
  const { app, caller, taskProgress, is2025, canAsk } = callee
  const { backend } = app
  const { tasks, confirmations, elicitations, forms, reminders } = app.work
  const { signal, inputResponses, notify } = context.mcpReq
  const progressToken = context.mcpReq._meta?.progressToken
  const { owner, isAnonymous } = caller
  const carried = new CarriedResults()
  const notes: string[] = []
  const begunAt = confirmations.begin()
  const progress = reportProgress(progressToken, backend, (params) => {
    // Sending fails when the client has just disconnected, which ends the call.
    notify({ method: 'notifications/progress', params }).catch(() => undefined)
  })
  const onLaunched = progress.follow
  let round: FormRound | undefined
  /** Whether the report goes on after the answer, until the task has ended. */
  let goesOn = false
  try {
    caller.onNamed?.(namedIn(args))
    const { onUpdate } = progress
    const onUnread = (note: string): void => void notes.push(note)
    const begun = is2025 ? undefined : await forms.begin({ context, owner, tool: callee.tool.name, onUnread })
    if (typeof begun === 'string') return toToolResult(begun)
    round = begun
    const asker = canAsk ? (round?.asker ?? elicitations.askerOf(context, { onUnread })) : undefined
    const detach = exchange.lost
    const { rejoin } = round ?? {}
    const call = { signal, inputResponses, detach, hold: carried.hold, onLaunched, onUpdate, asker, rejoin }
    const generation = generationOf(callee, context)
    const result = await tracedCall(callee, args, context, () => callTool(callee, args, call, generation))
    if (isStarted(result)) {
      const answer = tasks.create(result, owner, generation ?? 'extension')
      if (generation === '2025-11-25') {
        goesOn = true
        taskProgress.follow(result.taskId, progress)
      }
      return answer
    }
    tasks.forgetExpired()
    const isReceived = !signal.aborted && !exchange.lost.aborted
    if (isReceived && round?.hasForms() === true) {
      // The next round makes the result of the call.
      carried.end(false)
      return await round.request()
    }
    const complete = isReceived && !isAnonymous ? await addOwed(result, carried, reminders, owner) : result
    const marked = markResult(addNotes(complete, notes), carried, backend, owner)
    const answer = addImages(marked, imagesOf(backend, carried.taskIds))
    if (signal.aborted) carried.end(false)
    return answer
  } catch (error) {
    carried.end(false)
    throw error
  } finally {
    if (!goesOn) progress.stop()
    exchange.onEnd((isWritten) => {
      if (isWritten) confirmations.confirm(owner, begunAt)
      if (isWritten && carried.taskIds.length > 0) confirmations.noteWritten(owner)
      carried.end(isWritten)
      round?.end(isWritten)
    })
  }
}

/** Runs a call in a span of the request's trace (SEP-414). */
async function tracedCall(
  { tool, app: { backend } }: Callee,
  args: Readonly<Record<string, unknown>>,
  { mcpReq: { id, _meta } }: ServerContext,
  work: () => Promise<StartedTask | McpResult>,
): Promise<StartedTask | McpResult> {
  const { telemetry } = backend
  if (telemetry === undefined) return work()
  const operation = telemetry.start({
    type: 'execute_tool',
    name: tool.name,
    callId: String(id),
    isServed: true,
    parent: traceOf(_meta),
    input: args,
  })
  try {
    const result = await operation.run(work)
    const isError = !isStarted(result) && result['isError'] === true
    operation.end(isStarted(result) ? {} : { output: result, ...(isError && { errorType: TOOL_ERROR }) })
    return result
  } catch (error) {
    operation.end({ errorType: codeOf(error), error: describeFailure(error) })
    throw error
  }
}

/** The error type of a span. OpenTelemetry's conventions use the code of a JSON-RPC error. */
const codeOf = (error: unknown): string => (error instanceof ProtocolError ? String(error.code) : errorTypeOf(error))

/** The protocol by which the client follows the task, if the call becomes one; undefined when it cannot become one. */
function generationOf({ is2025, asTask }: Callee, context: ServerContext): TaskGeneration | undefined {
  if (is2025 && asTask) return '2025-11-25'
  return declaredBy(context).hasTasks ? 'extension' : undefined
}

async function callTool(
  { tool, is2025 }: Callee,
  args: Readonly<Record<string, unknown>>,
  call: McpCall,
  generation: TaskGeneration | undefined,
): Promise<StartedTask | McpResult> {
  if (generation === '2025-11-25') return startTask(tool, args, call)
  if (generation === 'extension' && call.rejoin === undefined) {
    const started = await tool.start?.(args, call)
    if (started !== undefined) return started
  } else if (tool.requiresTask === true && call.rejoin === undefined) {
    if (is2025) {
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `The tool ${tool.name} must be called as a task.`)
    }
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
  }
  return tool.call(args, call)
}
