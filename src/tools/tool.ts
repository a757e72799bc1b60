/**
 * The neutral tool: a tool for a model, independent of any agent SDK. A call never rejects. Invalid input and exceptions become results with an `error`.
 */
import { toLines } from '../data/control-characters.js'
import type { z } from 'zod'
import { CallLeases } from './call-leases.js'
import type { HoldLease } from '../features/delivery/leases.js'
import type { QuestionAsker } from '../features/questions/question-askers.js'
import type { TaskOutputEvent } from '../features/output/output-stream.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../data/preview.js'

/** Why a call failed. */
export interface ToolError {
  /** The reason, in words. */
  readonly message: string
  /**
   * The kind of failure: `parameter_validation`, `execution_failed`, `limit_reached`, `paused` (a person has paused background tasks), `aborted` (the
   * call was aborted) or `cancelled` (the task was cancelled). Your own tools may use other kinds.
   */
  readonly type: string
}

/** The result of a call. */
export interface ToolResult {
  /** The text for the model. */
  readonly llmContent: string
  /** The text for a person, in Markdown. */
  readonly returnDisplay: string
  /** Data for the host: for example `agentId`, the id of a launched task, and the ids of deliveries. */
  readonly metadata?: Readonly<Record<string, unknown>> & {
    readonly agentId?: string
    /** The id of the delivery of the task results that this result contains. */
    readonly deliveryId?: string
    /** Overdue results that were added to this result: the id of their delivery, and their tasks. */
    readonly notification?: { readonly deliveryId?: string; readonly taskIds?: readonly string[] }
  }
  /**
   * The ids of all deliveries in this result. Absent if it delivers nothing. With a store, write them to your transcript together with the result, so
   * that `wasDelivered` finds them after a crash.
   */
  readonly deliveryIds?: readonly string[]
  /** Present when the call failed. */
  readonly error?: ToolError
}

/** A part of the output of the task that a call waits for. */
export type OutputUpdate = Omit<TaskOutputEvent, 'taskId'>

/** The context of one call. */
export interface ToolContext {
  /** Aborts the call. The call stops waiting. The option `onForegroundAbort` decides whether its task is cancelled or continues. */
  readonly signal?: AbortSignal | undefined
  /** The id that the host or its SDK gave the call. */
  readonly toolCallId?: string | undefined
  /** Aborts when nobody can receive the result of the call any more. A wait ends, and the task of the call continues in the background. */
  readonly detach?: AbortSignal | undefined
  /**
   * Takes over the lease of each task result that the result of the call contains. Call `acknowledge()` on it when the result of the call has arrived.
   * Call `release()` when it did not arrive; then the task results are owed again. `hold` is called before the call returns. Default: in a turn of
   * `createTurns` or `withTurn`, returned results count as delivered when the turn was accepted; otherwise at once.
   */
  readonly hold?: HoldLease | undefined
  /** Called with the output of the task that the call waits for. If it throws, the error is reported, and has no other effect. */
  readonly onUpdate?: ((update: OutputUpdate) => unknown) | undefined
  /** Called with the id of the task that the call launches: one that it waits for, or a command. Must not throw. */
  readonly onLaunched?: ((taskId: string) => void) | undefined
  /** Asks a person the questions of the tasks that the call waits for. Default: the call returns the question, and the model answers it. */
  readonly asker?: QuestionAsker | undefined
}

const FUNCTIONS = ['hold', 'onUpdate', 'onLaunched'] as const

/** Returns the error for an invalid context; undefined if it is valid. The context of an SDK may have more fields. */
export function refuseContext(tool: string, context: ToolContext): ToolResult | undefined {
  const wrong = FUNCTIONS.find((field) => context[field] !== undefined && typeof context[field] !== 'function')
  return wrong && validationError(tool, `context.${wrong}`, context[wrong], 'a function')
}

/** The input of a tool with this schema. A `Tool` without a type argument takes any input, and checks it at run time. */
export type ToolInput<Schema extends z.ZodObject> = z.ZodObject extends Schema ? unknown : z.input<Schema>

/** A tool for any agent SDK. */
export interface Tool<Schema extends z.ZodObject = z.ZodObject, Input = ToolInput<Schema>> {
  /** The name under which the model calls it. */
  readonly name: string
  /** The description that the model reads. */
  readonly description: string
  /** The schema of its input; `z.toJSONSchema` converts it. */
  readonly inputSchema: Schema
  /** Says what a call with this input would do, in a few words. Never throws. */
  describe(input: Input): string
  /**
   * Checks the input and runs the tool. Never rejects.
   * @param input the parameters; `undefined` and `null` count as `{}`
   * @param context the context of the call
   * @returns the result, which has an `error` if the call failed
   */
  execute(input: Input, context?: ToolContext): Promise<ToolResult>
}

/** The input of `defineTool`. The schema gives `run` its types. */
export interface ToolDefinition<Schema extends z.ZodObject> {
  /** The name under which the model calls it. */
  readonly name: string
  /** The description that the model reads. */
  readonly description: string
  /** The schema of the input. Its checks must be synchronous, because a call takes effect immediately. */
  readonly inputSchema: Schema
  /**
   * Returns the current description and schema for the model. It is called each time one of them is read. Calls are always checked with `inputSchema`.
   */
  readonly listed?: () => { readonly description: string; readonly inputSchema: Schema }
  /** Says what a call would do, in a few words. Default: the name of the tool. */
  readonly describe?: (input: z.output<Schema>) => string
  /** Runs the tool. An exception becomes a result with an `error`. */
  readonly run: (input: z.output<Schema>, context: ToolContext) => ToolResult | Promise<ToolResult>
}

/**
 * Creates a tool. It checks its input with its schema, and turns exceptions into results with an `error`.
 * @param definition the name, the schema and the function of the tool
 * @returns the tool
 */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool<Schema> {
  const { name, description, inputSchema, listed = () => ({ description, inputSchema }), describe, run } = definition
  return {
    name,
    get description() {
      return listed().description
    },
    get inputSchema() {
      return listed().inputSchema
    },
    describe: (input) => {
      try {
        const parsed = inputSchema.safeParse(input ?? {})
        return (parsed.success ? describe?.(parsed.data) : undefined) ?? name
      } catch {
        return name
      }
    },
    execute: async (input, context = {}) => {
      const leases = new CallLeases(context.hold)
      try {
        const parsed = inputSchema.safeParse(input ?? {})
        if (!parsed.success) {
          const { field, received, expected } = describeIssue(parsed.error, input, 'params')
          return validationError(name, field, received, expected)
        }
        if (context.signal?.aborted === true) {
          return errorResult('aborted', `The call of ${name} was aborted before it began.`)
        }
        const refusal = refuseContext(name, context)
        if (refusal !== undefined) return refusal
        const result = await run(parsed.data, { ...context, hold: leases.hold })
        // A terminal would obey the control characters that the output of a program can contain.
        const returnDisplay = toLines(result.returnDisplay)
        const shown = returnDisplay === result.returnDisplay ? result : { ...result, returnDisplay }
        return withDeliveries(shown, leases.pass())
      } catch (error) {
        leases.release()
        return context.signal?.aborted === true
          ? errorResult('aborted', `The call of ${name} was aborted.`)
          : errorResult('execution_failed', `${name} failed: ${describeFailure(error)}`)
      }
    },
  }
}

export function withDeliveries(result: ToolResult, ids: readonly string[]): ToolResult {
  const deliveryIds = [...new Set([...(result.deliveryIds ?? []), ...ids])]
  return deliveryIds.length === 0 ? result : { ...result, deliveryIds }
}

export function textResult(text: string, metadata: NonNullable<ToolResult['metadata']> = {}): ToolResult {
  return { llmContent: text, returnDisplay: text, metadata }
}

/** The result of a failed call. Its texts are the message, unless `more` has other texts. */
export function errorResult(type: string, message: string, more: Partial<Omit<ToolResult, 'error'>> = {}): ToolResult {
  return { llmContent: message, returnDisplay: message, ...more, error: { message, type } }
}

/** The result of a call with an invalid parameter. It names the field, the received value and what was expected. */
export function validationError(tool: string, field: string, received: unknown, expected: string): ToolResult {
  return invalidParameters(tool, `${field}: got ${preview(received)}, expected ${expected}.`)
}

/** The result of a call with invalid parameters, for a complete message. */
export function invalidParameters(tool: string, message: string): ToolResult {
  return errorResult('parameter_validation', message, {
    llmContent: `Invalid parameters for ${tool}: ${message}`,
    returnDisplay: `Invalid parameters: ${message}`,
  })
}
