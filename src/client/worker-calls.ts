/**
 * The calls that a remote worker is running. Each is answered once, with a result or an error, when its tool has really
 * ended; a call whose connection is gone is aborted, and its answer is nobody's.
 */
import { describeFailure } from '../protocol/outcomes.js'
import { JSON_RPC } from '../protocol/tool-calls.js'
import type { ServerToWorkerMessage, WorkerMessage } from '../protocol/instance-messages.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'
import { executeTool, type WorkerProgress, type WorkerTool } from './worker-tools.js'

type ToolCallMessage = Extract<ServerToWorkerMessage, { type: 'tool_call' }>
type ToolCancelMessage = Extract<ServerToWorkerMessage, { type: 'tool_cancel' }>

export interface WorkerCallsOptions {
  readonly tools: ReadonlyMap<string, WorkerTool>
  /** The largest frame that the server takes, in bytes. */
  readonly maxFrameBytes: number
  readonly send: (message: WorkerMessage) => void
  /** Told of exceptions in abort listeners. Does not throw. */
  readonly report: (error: unknown) => void
}

export function createWorkerCalls({ tools, maxFrameBytes, send, report }: WorkerCallsOptions) {
  const running = new Map<string, AbortController>()

  function answer(message: WorkerMessage): void {
    const { length } = new TextEncoder().encode(JSON.stringify(message))
    if (length <= maxFrameBytes) send(message)
    else if (message.type === 'tool_result') {
      // The server would end the whole connection for a frame that is too large.
      const text = `The result has ${length} bytes, more than the ${maxFrameBytes} that a frame may have.`
      send({ type: 'tool_error', callId: message.callId, code: 'RESULT_TOO_LARGE', message: text })
    }
  }

  function abort(controller: AbortController, reason: string): void {
    controller.abort(new DOMException(reason, 'AbortError'))
  }

  async function run(call: ToolCallMessage): Promise<void> {
    const { callId, name, taskId, commandId } = call
    if (running.has(callId)) return
    const controller = new AbortController()
    // One that throws would end the worker's process.
    isolateAbortListeners(controller.signal, report)
    running.set(callId, controller)
    const isRunning = (): boolean => running.get(callId) === controller
    try {
      const tool = tools.get(name)
      if (tool === undefined) {
        answer({ type: 'tool_error', callId, code: JSON_RPC.unknownTool, message: `Unknown tool: ${name}` })
        return
      }
      const progress = (told: number | WorkerProgress): void => {
        if (isRunning()) {
          answer({ type: 'tool_progress', callId, ...(typeof told === 'number' ? { progress: told } : told) })
        }
      }
      const { signal } = controller
      const result = await executeTool(tool, call.arguments, { signal, progress, taskId, commandId })
      if (isRunning()) answer({ type: 'tool_result', callId, result: { ...result, content: [...result.content] } })
    } catch (error) {
      if (isRunning()) {
        answer({ type: 'tool_error', callId, code: 'CANCELLED', message: describeFailure(error).slice(0, 10_000) })
      }
    } finally {
      if (isRunning()) running.delete(callId)
    }
  }

  return {
    /** How many run. */
    get size(): number {
      return running.size
    },
    start: (call: ToolCallMessage): void => void run(call),
    cancel({ callId, reason = 'The call was given up.' }: ToolCancelMessage): void {
      const controller = running.get(callId)
      if (controller !== undefined) abort(controller, reason)
    },
    /** The connection that asked is gone: nobody waits for an answer. */
    abandon(reason: string): void {
      const controllers = [...running.values()]
      running.clear()
      for (const controller of controllers) abort(controller, reason)
    },
  }
}
