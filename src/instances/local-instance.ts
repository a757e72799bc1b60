/** An instance made of functions of this process. */
import { systemClock, type Clock } from '../clock.js'
import { InstanceError, ToolCallError } from '../errors.js'
import { preview } from '../preview.js'
import { describeTool, runTool, type InstanceTool, type InstanceToolContext } from '../protocol/instance-tools.js'
import { JSON_RPC } from '../protocol/tool-calls.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import { createCallsInFlight, type CallAbort } from './calls-in-flight.js'
import { createDelay } from './delay.js'
import type { Instance, ToolCall } from './instance.js'

/** Options of `localInstance`. */
export interface LocalInstanceOptions {
  /** The id under which tasks name it. */
  readonly id: string
  /** Its tools, with different names. */
  readonly tools: readonly InstanceTool[]
  /** How long `close` waits for calls that were aborted, in ms. Default 2000. */
  readonly closeGraceMs?: number
  /** Default: the platform's clock. */
  readonly clock?: Clock
  /** Called with exceptions of tools' abort listeners. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

/**
 * Creates an instance from functions of this process.
 * @throws InstanceError when two tools have the same name
 */
export function localInstance(options: LocalInstanceOptions): Instance {
  const { id, closeGraceMs = 2000, clock = systemClock } = options
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  if (tools.size < options.tools.length) {
    throw new InstanceError('INSTANCE_START_FAILED', id, `Instance ${preview(id)} has two tools of the same name.`)
  }
  const calls = createCallsInFlight(id, options.onError)
  return {
    id,
    kind: 'local',
    listTools: () => Promise.resolve(Array.from(tools.values(), describeTool)),
    callTool: (call) =>
      calls.run(call, (abort) => {
        const tool = tools.get(call.name)
        if (tool === undefined) throw new ToolCallError(JSON_RPC.unknownTool, `Unknown tool: ${call.name}`)
        return callTool(tool, call, abort)
      }),
    onLost: () => undefined,
    close: async () => {
      calls.end('The instance was closed.')
      const grace = createDelay(clock, closeGraceMs)
      await Promise.race([calls.settled(), grace.passed])
      grace.cancel()
    },
  }
}

async function callTool(tool: InstanceTool, call: ToolCall, abort: CallAbort): Promise<ToolCallResult> {
  let isOver = false
  const context: InstanceToolContext = {
    get signal() {
      return abort.signal
    },
    // A tool may put another signal in the place of this one.
    set signal(value) {
      Object.defineProperty(this, 'signal', { value, enumerable: true, configurable: true, writable: true })
    },
    progress: (progress) => {
      if (!isOver && !abort.aborted) call.onProgress(typeof progress === 'number' ? { progress } : progress)
    },
    taskId: call.taskId,
    commandId: call.commandId,
  }
  try {
    return await runTool(tool, call.arguments, context, () => abort.aborted)
  } finally {
    isOver = true
  }
}
