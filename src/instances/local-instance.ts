/** An instance made of functions of this process. */
import type { z } from 'zod'
import { systemClock, type Clock } from '../clock.js'
import { InstanceError, ToolCallError } from '../errors.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'
import { JSON_RPC } from '../protocol/tool-calls.js'
import { createCallsInFlight, type CallAbort } from './calls-in-flight.js'
import { createDelay } from './delay.js'
import type { CallProgress, Instance, ToolCall, ToolDescription } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import { jsonSchemaOf } from '../protocol/json-schema.js'
import { failedResult, failureResult, toToolCallResult } from '../protocol/tool-result.js'

/** The circumstances of one call. */
export interface LocalToolContext {
  /** Aborts when the command is cancelled, takes too long, or the instance is disconnected. A listener that throws harms nothing. */
  readonly signal: AbortSignal
  /** Says how far the call has come: a number, or MCP's `{ progress, total?, message? }`. Ignored once the call has ended. */
  readonly progress: (progress: number | CallProgress) => void
  /** The task that calls. */
  readonly taskId?: string | undefined
  /** The command that calls. */
  readonly commandId?: string | undefined
}

/**
 * A function that commands can name: the neutral tool of this package, or anything of its shape. What it returns is put in MCP `content`,
 * unless it already is; what it throws becomes an `isError` result.
 */
export interface LocalTool<Input extends z.ZodType = z.ZodType> {
  /** What commands call it. */
  readonly name: string
  /** What it does. */
  readonly description?: string
  /** Checks the arguments and gives `execute` its types. */
  readonly inputSchema?: Input
  // A method, so that a tool with a narrower input fits a list of tools.
  /** Does the work. */
  execute(input: z.output<Input>, context: LocalToolContext): unknown
}

/** Options of `localInstance`. */
export interface LocalInstanceOptions {
  /** The id under which tasks name it. */
  readonly id: string
  /** What it can do; no two of one name. */
  readonly tools: readonly LocalTool[]
  /** How long `close` waits for calls that were aborted, in ms. Default 2000. */
  readonly closeGraceMs?: number
  /** Default: the platform's. */
  readonly clock?: Clock
  /** Told of exceptions in abort listeners of tools. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
}

/** Types one tool by its schema. */
export function localTool<Input extends z.ZodType>(tool: LocalTool<Input>): LocalTool {
  return tool
}

/**
 * Makes an instance of functions.
 * @throws InstanceError when two tools have one name
 */
export function localInstance(options: LocalInstanceOptions): Instance {
  const { id, closeGraceMs = 2000, clock = systemClock } = options
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  if (tools.size < options.tools.length) {
    throw new InstanceError('INSTANCE_START_FAILED', id, `Instance ${preview(id)} has two tools of one name.`)
  }
  const calls = createCallsInFlight(id, options.onError)
  return {
    id,
    kind: 'local',
    listTools: () => Promise.resolve(Array.from(tools.values(), describeTool)),
    callTool: (call) =>
      calls.run(call, async (abort) => {
        const tool = tools.get(call.name)
        if (tool === undefined) throw new ToolCallError(JSON_RPC.unknownTool, `Unknown tool: ${call.name}`)
        return executeTool(tool, call, abort)
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

const ABORT = Symbol('abort')

/** The signal of a call as a field of the tool's context, made when it is read. The tool may put another in its place. */
const SIGNAL: PropertyDescriptor & ThisType<{ readonly [ABORT]: CallAbort }> = {
  enumerable: true,
  configurable: true,
  get() {
    return this[ABORT].signal
  },
  set(value: unknown) {
    Object.defineProperty(this, 'signal', { value, enumerable: true, configurable: true, writable: true })
  },
}

async function executeTool(tool: LocalTool, call: ToolCall, abort: CallAbort): Promise<ToolCallResult> {
  const parsed = await tool.inputSchema?.safeParseAsync(call.arguments)
  if (parsed?.success === false) {
    const { field, received, expected } = describeIssue(parsed.error, call.arguments, 'arguments')
    return failedResult('INVALID_ARGUMENTS', `${field}: got ${preview(received)}, expected ${expected}.`)
  }
  let isOver = false
  try {
    // It may have been given up while its arguments were checked: then it does not start (S4).
    if (abort.aborted) abort.signal.throwIfAborted()
    const context = {
      progress: (progress: number | CallProgress) => {
        if (!isOver && !abort.aborted) call.onProgress(typeof progress === 'number' ? { progress } : progress)
      },
      taskId: call.taskId,
      commandId: call.commandId,
    }
    // A field of its own, so that a copy of the context has it too; a getter in the literal would be made anew for each call.
    Object.defineProperty(Object.defineProperty(context, ABORT, { value: abort, configurable: true }), 'signal', SIGNAL)
    const input: unknown = parsed === undefined ? call.arguments : parsed.data
    const value: unknown = await tool.execute(input, context as unknown as LocalToolContext)
    return toToolCallResult(value)
  } catch (error) {
    // A tool that speaks JSON-RPC itself keeps its number.
    if (abort.aborted || error instanceof ToolCallError) throw error
    return failureResult(error)
  } finally {
    isOver = true
  }
}

function describeTool({ name, description, inputSchema }: LocalTool): ToolDescription {
  return {
    name,
    ...(description !== undefined && { description }),
    ...(inputSchema !== undefined && { inputSchema: jsonSchemaOf(inputSchema) }),
  }
}
