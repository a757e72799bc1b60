/** The tools of a remote worker: described to the server, and run for one call each. */
import type { z } from 'zod'
import { jsonSchemaOf } from '../protocol/json-schema.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'
import { failedResult, failureResult, toToolCallResult } from '../protocol/tool-result.js'

/** How far a call has come, in MCP's words. */
export interface WorkerProgress {
  /** How far it is, in a unit of the tool's own. */
  readonly progress: number
  /** Where it ends, in the same unit. */
  readonly total?: number
  /** What it is doing. */
  readonly message?: string
}

/** The circumstances of one call. */
export interface WorkerToolContext {
  /** Aborts when the command is cancelled or takes too long, and when the connection ends. */
  readonly signal: AbortSignal
  /** Says how far the call has come: a number, or MCP's `{ progress, total?, message? }`. Ignored once the call has ended. */
  readonly progress: (progress: number | WorkerProgress) => void
  /** The task that calls. */
  readonly taskId?: string | undefined
  /** The command that calls. */
  readonly commandId?: string | undefined
}

/**
 * A tool of a worker: the neutral tool of this package, or anything of its shape. What it returns is put in MCP `content`,
 * unless it already is; what it throws becomes an `isError` result with the error's own `code`.
 */
export interface WorkerTool<Input extends z.ZodType = z.ZodType> {
  /** What commands call it. */
  readonly name: string
  /** What it does. */
  readonly description?: string
  /** Checks the arguments and gives `execute` its types. */
  readonly inputSchema?: Input
  // A method, so that a tool with a narrower input fits a list of tools.
  /** Does the work; what it returns is put in MCP `content`, what it throws becomes an `isError` result. */
  execute(input: z.output<Input>, context: WorkerToolContext): unknown
}

/** Types one tool by its schema. */
export function workerTool<Input extends z.ZodType>(tool: WorkerTool<Input>): WorkerTool {
  return tool
}

/** A tool as the server is told of it. */
export function describeTool({ name, description, inputSchema }: WorkerTool) {
  return {
    name,
    ...(description !== undefined && { description }),
    ...(inputSchema !== undefined && { inputSchema: jsonSchemaOf(inputSchema) }),
  }
}

/** Runs a tool. Rejects when the signal aborted and the tool threw; every other failure is a result. */
export async function executeTool(
  tool: WorkerTool,
  args: Readonly<Record<string, unknown>>,
  context: WorkerToolContext,
) {
  try {
    const parsed = await tool.inputSchema?.safeParseAsync(argumentsFor(tool, args))
    if (parsed?.success === false) {
      const { field, received, expected } = describeIssue(parsed.error, args, 'arguments')
      return failedResult('INVALID_ARGUMENTS', `${field}: got ${preview(received)}, expected ${expected}.`)
    }
    // It may have been given up while its arguments were checked: then it does not start (S4).
    context.signal.throwIfAborted()
    return toToolCallResult(await tool.execute(parsed === undefined ? args : parsed.data, context))
  } catch (error) {
    if (context.signal.aborted) throw error
    return failureResult(error)
  }
}

/** The server names the instance in every call (seed 004); a strict schema that has no such field need not refuse it. */
function argumentsFor({ inputSchema }: WorkerTool, args: Readonly<Record<string, unknown>>): unknown {
  const { shape } = (inputSchema ?? {}) as { shape?: object }
  if (shape === undefined || 'instanceId' in shape || !('instanceId' in args)) return args
  const { instanceId: _named, ...rest } = args
  return rest
}
