/**
 * The running calls of a worker. Each is answered once, with a result or an error, when its tool has settled. When the connection
 * is lost its calls are aborted, and not answered.
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
  /** The largest frame that the server accepts, in bytes. */
  readonly maxFrameBytes: number
  readonly send: (message: WorkerMessage) => void
  /** Called with exceptions of abort listeners. Must not throw. */
  readonly report: (error: unknown) => void
}

export function createWorkerCalls({ tools, maxFrameBytes, send, report }: WorkerCallsOptions) {
  const running = new Map<string, AbortController>()

  function answer(message: WorkerMessage): void {
    const { length } = new TextEncoder().encode(JSON.stringify(message))
    if (length <= maxFrameBytes) send(message)
    else if (message.type === 'tool_result') {
      // The server closes the connection when a frame is too large.
      const text = `The result has ${length} bytes; a frame may have ${maxFrameBytes}.`
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
    // A listener that throws would end the worker's process.
    isolateAbortListeners(controller.signal, report)
    running.set(callId, controller)
    const isRunning = (): boolean => running.get(callId) === controller
    try {
      const tool = tools.get(name)
      if (tool === undefined) {
        answer({ type: 'tool_error', callId, code: JSON_RPC.unknownTool, message: `Unknown tool: ${name}` })
        return
      }
      const progress = (made: number | WorkerProgress): void => {
        if (isRunning()) {
          answer({ type: 'tool_progress', callId, ...(typeof made === 'number' ? { progress: made } : made) })
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
    /** The number of running calls. */
    get size(): number {
      return running.size
    },
    start: (call: ToolCallMessage): void => void run(call),
    cancel({ callId, reason = 'The call was cancelled.' }: ToolCancelMessage): void {
      const controller = running.get(callId)
      if (controller !== undefined) abort(controller, reason)
    },
    /** Aborts all calls without answering them: their connection is closed. */
    abandon(reason: string): void {
      const controllers = [...running.values()]
      running.clear()
      for (const controller of controllers) abort(controller, reason)
    },
  }
}
