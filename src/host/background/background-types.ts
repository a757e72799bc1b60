/** The types of tools that run in the background. The SDKs are optional, so their tools are described by shape. */
import type { z } from 'zod'
import type { callProgressSchema } from '../../protocol/tool-calls.js'
import type { Tool } from '../../tools/tool.js'
import type { referenceSchema } from './schemas.js'

/** When a tool's calls run in the background. */
export type BackgroundMode = 'never' | 'choice' | 'always'

/** Options of `tasks.background`. */
export interface BackgroundOptions<Mode extends BackgroundMode = BackgroundMode> {
  /** `never`: the tool is unchanged. `choice`: the model sets `run_in_background`. `always`: each call returns at once. */
  readonly mode: Mode
  /** With `choice`: the seconds after which a foreground call moves to the background; -1 for never. Default: the host's setting. */
  readonly afterSeconds?: number
  /** The tool's name, for its tasks. Default: its own name. Required for a tool of the AI SDK, which has none. */
  readonly name?: string
  /** The owner of the tasks. Default: the host's. */
  readonly owner?: string
  /** The task whose run owns these tasks. Default: none. */
  readonly parentId?: string
}

/**
 * What a background call returns to the model: the id of the task, its current status, and how the result will arrive.
 * @useDeclaredType
 */
export type BackgroundTask = z.output<ReturnType<typeof referenceSchema>>

/** A tool of an MCP server: its definition from a client's `listTools`, and a function that calls it. */
export interface McpTool {
  /** The tool's name. */
  readonly name: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: object
  /** JSON Schema of `structuredContent`. */
  readonly outputSchema?: object | undefined
  /** Calls the tool: `(args, options) => client.callTool({ name, arguments: args }, options)`. */
  call(
    args: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: (progress: z.output<typeof callProgressSchema>) => void },
  ): Promise<{ content: { type: string; text?: string }[]; structuredContent?: unknown; isError?: boolean | undefined }>
}

/** The same tool with an extra parameter in its input (`Added`). Its result may be a `BackgroundTask`. */
export type InBackground<
  T,
  Mode extends BackgroundMode,
  Added = Mode extends 'choice' ? { run_in_background?: boolean | null | undefined } : unknown,
> = Mode extends 'never'
  ? T
  : T extends Tool<z.ZodObject<infer Shape, infer Config>>
    ? Mode extends 'choice'
      ? Tool<z.ZodObject<Shape & { run_in_background: z.ZodOptional<z.ZodBoolean> }, Config>>
      : T
    : T extends McpTool
      ? T
      : T extends { readonly invoke: (...args: infer Args) => infer Result; readonly type: 'function' }
        ? Omit<T, 'invoke'> & { readonly invoke: (...args: Args) => Result | Promise<BackgroundTask> }
        : T extends { readonly invoke: unknown; readonly schema: z.ZodType }
          ? T & { invoke(input: z.input<T['schema']> & Added, config?: object): Promise<unknown> }
          : T extends { inputSchema: unknown; execute?: (input: infer Input, options: infer Options) => infer Result }
            ? Omit<T, 'inputSchema' | 'execute' | 'outputSchema' | 'toModelOutput'> & {
                inputSchema: { readonly '~standard': z.core.$ZodStandardSchema<z.ZodType<Input & Added>> }
                execute: (
                  input: Input & Added,
                  options: Options,
                ) => PromiseLike<
                  BackgroundTask | (Result extends AsyncIterable<infer Output> ? Output : Awaited<Result>)
                >
              }
            : never
