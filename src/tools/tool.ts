/**
 * The neutral tool: what a model can call, bound to no agent SDK. A call never throws: input that does not fit and
 * exceptions inside become results with an `error`.
 */
import type { z } from 'zod'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'

/** Why a call did not do what it was asked to. */
export interface ToolError {
  /** In words. */
  readonly message: string
  /**
   * `parameter_validation` (the seeds' literal), `execution_failed`, `limit_reached`, `aborted` (the call was) or
   * `cancelled` (the task was); other tools may have others.
   */
  readonly type: string
}

/** What a call gives back (seed 002). */
export interface ToolResult {
  /** For the model. */
  readonly llmContent: string
  /** For the person who watches; Markdown. */
  readonly returnDisplay: string
  /** For the host's own use. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Present when the call failed. */
  readonly error?: ToolError
}

/** The circumstances of one call. */
export interface ToolContext {
  /** Aborts the call: what it waits for, and a task that it runs in place. */
  readonly signal?: AbortSignal | undefined
  /** The host's name for the call. */
  readonly toolCallId?: string | undefined
}

/** A tool that any agent SDK can be given. */
export interface Tool<Schema extends z.ZodObject = z.ZodObject> {
  /** What the model calls it. */
  readonly name: string
  /** What the model is told of it. */
  readonly description: string
  /** What a call takes; zod turns it into JSON Schema. */
  readonly inputSchema: Schema
  /** What a call with this input would do, in a few words. Never throws. */
  describe(input: unknown): string
  /**
   * Checks the input and does the work. Never rejects.
   * @param input what the model sent; nothing at all counts as no parameters
   */
  execute(input: unknown, context?: ToolContext): Promise<ToolResult>
}

/** What a tool is made of; the schema gives `run` its types. */
export interface ToolDefinition<Schema extends z.ZodObject> {
  /** What the model calls it. */
  readonly name: string
  /** What the model is told of it. */
  readonly description: string
  /** Its checks are synchronous, so that a call takes effect when it is made. */
  readonly inputSchema: Schema
  /** What a call would do, in a few words. Default: the name. */
  readonly describe?: (input: z.output<Schema>) => string
  /** Does the work. What it throws becomes a result with an `error`. */
  readonly run: (input: z.output<Schema>, context: ToolContext) => ToolResult | Promise<ToolResult>
}

/** Makes a tool that checks its input by its own schema and turns exceptions into results. */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): Tool<Schema> {
  const { name, description, inputSchema, describe, run } = definition
  return {
    name,
    description,
    inputSchema,
    describe: (input) => {
      try {
        const parsed = inputSchema.safeParse(input ?? {})
        return (parsed.success ? describe?.(parsed.data) : undefined) ?? name
      } catch {
        return name
      }
    },
    execute: async (input, context = {}) => {
      try {
        const parsed = inputSchema.safeParse(input ?? {})
        if (!parsed.success) {
          const { field, received, expected } = describeIssue(parsed.error, input, 'params')
          return validationError(name, field, received, expected)
        }
        if (context.signal?.aborted === true) {
          return errorResult('aborted', `The call of ${name} was aborted before it began.`)
        }
        return await run(parsed.data, context)
      } catch (error) {
        return context.signal?.aborted === true
          ? errorResult('aborted', `The call of ${name} was aborted.`)
          : errorResult('execution_failed', `${name} failed: ${describeFailure(error)}`)
      }
    },
  }
}

/** A result that says what went wrong, to the model and to the person. */
export function errorResult(type: string, message: string, more: Partial<Omit<ToolResult, 'error'>> = {}): ToolResult {
  return { llmContent: message, returnDisplay: message, ...more, error: { message, type } }
}

/** The result of a call whose parameters do not fit: which field, what came, what was expected. */
export function validationError(tool: string, field: string, received: unknown, expected: string): ToolResult {
  const message = `${field}: got ${preview(received)}, expected ${expected}.`
  return errorResult('parameter_validation', message, {
    llmContent: `Invalid parameters for ${tool}: ${message}`,
    returnDisplay: `Invalid parameters: ${message}`,
  })
}
