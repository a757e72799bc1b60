/**
 * The running calls of a worker. Each is answered once, with a result or an error, when its tool has settled.
 *
 * When a connection is lost, its calls are aborted. A tool may keep running nevertheless. Its call is then listed in the next `hello`, and
 * answered with an error on that connection when the tool has settled.
 */
import { describeFailure } from '../protocol/outcomes.js'
import { UNKNOWN_TOOL, unknownTool } from '../protocol/tool-calls.js'
import { MAX_NAMED_CALLS, type ServerToWorkerMessage, type WorkerMessage } from '../protocol/instance-messages.js'
import { IsolatedController } from '../isolation/isolated-controller.js'
import { ToolCallError } from '../errors.js'
import { errorTypeOf, TOOL_ERROR, traceOf, type Telemetry } from '../protocol/telemetry.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import { runTool, type InstanceTool, type InstanceToolContext } from '../protocol/instance-tools.js'

type ToolCallMessage = Extract<ServerToWorkerMessage, { type: 'tool_call' }>
type ToolCancelMessage = Extract<ServerToWorkerMessage, { type: 'tool_cancel' }>

export interface WorkerCallsOptions {
  readonly tools: ReadonlyMap<string, InstanceTool>
  /** The largest frame that the server accepts, in bytes. */
  readonly maxFrameBytes: number
  readonly send: (message: WorkerMessage) => void
  /** Called with exceptions of abort listeners. Must not throw itself. */
  readonly report: (error: unknown) => void
  readonly telemetry?: Telemetry | undefined
}

export function createWorkerCalls({ tools, maxFrameBytes, send, report, telemetry }: WorkerCallsOptions) {
  const running = new Map<string, IsolatedController>()
  /** The calls of lost connections whose tools have not settled. `isNamed` is true when the `hello` of the present connection listed the call. */
  const abandoned = new Map<string, { isNamed: boolean }>()

  function answer(message: WorkerMessage): void {
    const { length } = new TextEncoder().encode(JSON.stringify(message))
    if (length <= maxFrameBytes) send(message)
    else if (message.type === 'tool_result') {
      // The server would close the connection for a frame that is too large, so an error replaces the result.
      const text = `The message with the result has ${length} bytes. The maximum is ${maxFrameBytes} bytes (maxFrameBytes).`
      send({ type: 'tool_error', callId: message.callId, code: 'RESULT_TOO_LARGE', message: text })
    }
  }

  const abortError = (reason: string): DOMException => new DOMException(reason, 'AbortError')

  async function run(call: ToolCallMessage): Promise<void> {
    const { callId, name, taskId, commandId } = call
    if (running.has(callId)) return
    const abort = new IsolatedController(report)
    running.set(callId, abort)
    const isRunning = (): boolean => running.get(callId) === abort
    try {
      const tool = tools.get(name)
      if (tool === undefined) {
        answer({ type: 'tool_error', callId, code: UNKNOWN_TOOL, message: unknownTool(name, tools.keys()) })
        return
      }
      const progress: InstanceToolContext['progress'] = (value) => {
        if (isRunning()) {
          answer({ type: 'tool_progress', callId, ...(typeof value === 'number' ? { progress: value } : value) })
        }
      }
      const context = { signal: abort.signal, progress, taskId, commandId }
      const work = () => runTool(tool, argumentsFor(tool, call.arguments), context, () => abort.aborted)
      const result = await (telemetry === undefined ? work() : traced(telemetry, call, work))
      if (isRunning()) answer({ type: 'tool_result', callId, result: { ...result, content: [...result.content] } })
    } catch (error) {
      const code = error instanceof ToolCallError && !abort.aborted ? (error.number ?? error.code) : 'CANCELLED'
      if (isRunning()) answer({ type: 'tool_error', callId, code, message: describeFailure(error).slice(0, 10_000) })
    } finally {
      if (isRunning()) running.delete(callId)
      else endAbandoned(callId)
    }
  }

  function endAbandoned(callId: string): void {
    const isNamed = abandoned.get(callId)?.isNamed === true
    abandoned.delete(callId)
    if (isNamed) {
      answer({
        type: 'tool_error',
        callId,
        code: 'CANCELLED',
        message: 'The connection that the call came from was lost.',
      })
    }
  }

  return {
    get size(): number {
      return running.size
    },
    start: (call: ToolCallMessage): void => void run(call),
    cancel({ callId, reason = 'The call was cancelled.' }: ToolCancelMessage): void {
      running.get(callId)?.abort(abortError(reason))
    },
    /** Returns the calls of lost connections that still run, for the `hello` of the present connection. */
    nameAbandoned(): string[] {
      const callIds = [...abandoned.keys()].slice(-MAX_NAMED_CALLS)
      for (const callId of callIds) abandoned.set(callId, { isNamed: true })
      return callIds
    },
    /** Aborts all calls without an answer, because their connection is closed. */
    abandon(reason: string): void {
      const aborts = [...running.values()]
      for (const callId of running.keys()) abandoned.set(callId, { isNamed: false })
      for (const call of abandoned.values()) call.isNamed = false
      running.clear()
      for (const abort of aborts) abort.abort(abortError(reason))
    },
  }
}

/** Runs a tool in a span of the trace that came with the call. */
async function traced(
  telemetry: Telemetry,
  call: ToolCallMessage,
  work: () => Promise<ToolCallResult>,
): Promise<ToolCallResult> {
  const operation = telemetry.start({
    type: 'execute_tool',
    name: call.name,
    callId: call.commandId ?? call.callId,
    taskId: call.taskId,
    parent: traceOf(call),
    input: call.arguments,
  })
  try {
    const result = await operation.run(work)
    operation.end({ output: result, ...(result.isError === true && { errorType: TOOL_ERROR }) })
    return result
  } catch (error) {
    operation.end({ errorType: errorTypeOf(error), error: describeFailure(error) })
    throw error
  }
}

/**
 * The server adds `instanceId` to the arguments of every call. A tool with a strict schema without that field would refuse them, so it
 * is removed there.
 */
function argumentsFor({ inputSchema }: InstanceTool, args: Readonly<Record<string, unknown>>) {
  const { shape } = (inputSchema ?? {}) as { shape?: object }
  if (shape === undefined || 'instanceId' in shape || !('instanceId' in args)) return args
  const { instanceId: _named, ...rest } = args
  return rest
}
