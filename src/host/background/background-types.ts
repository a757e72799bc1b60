/** The types of `tasks.background`. They describe the tools of each SDK by their fields, because the SDKs are optional dependencies. */
import type { z } from 'zod'
import type { callProgressSchema } from '../../protocol/tool-calls.js'
import type { Tool } from '../../tools/tool.js'
import type { referenceSchema } from './schemas.js'

/** Which calls of a tool run in the background: no call, those for which the model sets `run_in_background`, or all. */
export type BackgroundMode = 'never' | 'choice' | 'always'

/** Options of `tasks.background`. */
export interface BackgroundOptions<Mode extends BackgroundMode = BackgroundMode> {
  /** `never`: the tool stays unchanged. `choice`: the model decides for each call with `run_in_background`. `always`: every call returns at once. */
  readonly mode: Mode
  /**
   * How long a foreground call waits for its result, in seconds; -1 for no limit. After that the call returns, and its task continues in the
   * background. Only with `choice`. Default: the host's `backgroundAfterSeconds`.
   */
  readonly afterSeconds?: number
  /** The name that the tasks show as their subagent. Default: the name of the tool. Required for a tool of the AI SDK, because it has no name. */
  readonly name?: string
  /** The owner of the tasks. Default: the owner of the host. */
  readonly owner?: string
  /** The id of the task whose run owns these tasks. Default: none, so they belong to `owner`. */
  readonly parentId?: string
}

/**
 * The result of a background call, which the model reads: the id of the task, its status, and how the result will arrive.
 * @useDeclaredType
 */
export type BackgroundTask = z.output<ReturnType<typeof referenceSchema>>

/** A tool of an MCP server: its definition, as `listTools` of a client returns it, and a function that calls it. */
export interface McpTool {
  /** The name of the tool, as `listTools` returns it. */
  readonly name: string
  /** The JSON Schema of the arguments. */
  readonly inputSchema: object
  /** The JSON Schema of `structuredContent`. */
  readonly outputSchema?: object | undefined
  /** Calls the tool: `(args, options) => client.callTool({ name, arguments: args }, options)`. */
  call(
    args: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: (progress: z.output<typeof callProgressSchema>) => void },
  ): Promise<{ content: { type: string; text?: string }[]; structuredContent?: unknown; isError?: boolean | undefined }>
}

/** The type of the wrapped tool. With `choice`, its input has one more parameter (`Added`). Its result may be a `BackgroundTask`. */
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
