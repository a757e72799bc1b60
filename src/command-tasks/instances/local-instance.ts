/** An instance that consists of functions in this process. */
import { systemClock, type Clock } from '../../system/clock.js'
import { InstanceError, ToolCallError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import { describeTool, runTool, type InstanceTool, type InstanceToolContext } from '../../protocol/instance-tools.js'
import {
  aClock,
  aFunction,
  aName,
  checkOptions,
  listOf,
  numberFrom,
  required,
  type OptionTypes,
} from '../../protocol/option-checks.js'
import { aTool } from '../../protocol/tool-option.js'
import { UNKNOWN_TOOL, unknownTool } from '../../protocol/tool-calls.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'
import { createCallsInFlight, type CallAbort } from './calls-in-flight.js'
import { createDelay } from './delay.js'
import type { Instance, ToolCall } from './instance.js'

/** Options of `localInstance`. */
export interface LocalInstanceOptions {
  /** The id of the instance. */
  readonly id: string
  /** The tools of the instance. Their names must be unique. */
  readonly tools: readonly InstanceTool[]
  /** How long `close` waits for aborted calls, in ms. Default 2000. */
  readonly closeGraceMs?: number
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** Called with exceptions of abort listeners that the tools have added. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

const optionTypes: OptionTypes<LocalInstanceOptions> = {
  id: required(aName),
  tools: required(listOf(aTool)),
  closeGraceMs: numberFrom(0),
  clock: aClock,
  onError: aFunction,
}

/**
 * Creates an instance whose tools are functions of this process.
 * @throws AgentTasksError when two tools have the same name
 * @throws INVALID_INPUT for an unknown or invalid option
 * @throws INVALID_SETTING for a number out of its range
 */
export function localInstance(options: LocalInstanceOptions): Instance {
  checkOptions(options, optionTypes)
  const { id, closeGraceMs = 2000, clock = systemClock } = options
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const names = options.tools.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) {
    const message = `Instance ${preview(id)} has two tools with the name ${preview(repeated)}. Tool names must be unique.`
    throw new InstanceError('INSTANCE_START_FAILED', id, message)
  }
  const calls = createCallsInFlight(id, options.onError)
  return {
    id,
    kind: 'local',
    toolNames: [...tools.keys()],
    listTools: () => Promise.resolve(Array.from(tools.values(), describeTool)),
    callTool: (call) =>
      calls.run(call, (abort) => {
        const tool = tools.get(call.name)
        if (tool === undefined) throw new ToolCallError(UNKNOWN_TOOL, unknownTool(call.name, tools.keys()))
        return callTool(tool, call, abort)
      }),
    onLost: () => undefined,
    close: async () => {
      calls.end('The instance was closed.')
      const grace = createDelay(clock, closeGraceMs, { name: `grace of ${id}` })
      await Promise.race([calls.settled(), grace.passed])
      grace.cancel()
    },
  }
}

async function callTool(tool: InstanceTool, call: ToolCall, abort: CallAbort): Promise<ToolCallResult> {
  const context = new CallContext(call, abort)
  try {
    return await runTool(tool, call.arguments, context, () => abort.aborted)
  } finally {
    context.end()
  }
}

/** The context of a call. `signal` is created on first use. It is an own property, so that a copy of the context keeps it. */
class CallContext implements InstanceToolContext {
  // All contexts share one getter, because V8 would create a hidden class for each getter function.
  static readonly #signal: PropertyDescriptor & ThisType<CallContext> = {
    get() {
      return this.#abort.signal
    },
    // A tool may assign another signal.
    set(value) {
      Object.defineProperty(this, 'signal', { value, enumerable: true, configurable: true, writable: true })
    },
    enumerable: true,
    configurable: true,
  }
  declare readonly signal: AbortSignal
  readonly progress: InstanceToolContext['progress']
  readonly taskId: string | undefined
  readonly commandId: string | undefined
  readonly #abort: CallAbort
  #hasEnded = false

  constructor(call: ToolCall, abort: CallAbort) {
    this.#abort = abort
    this.taskId = call.taskId
    this.commandId = call.commandId
    this.progress = (progress) => {
      if (!this.#hasEnded && !abort.aborted) call.onProgress(typeof progress === 'number' ? { progress } : progress)
    }
    Object.defineProperty(this, 'signal', CallContext.#signal)
  }

  end(): void {
    this.#hasEnded = true
  }
}
