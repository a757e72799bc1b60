/** The types of tools that run in the background. The SDKs are optional: their tools are described by their shape. */
import type { z } from 'zod'
import type { callProgressSchema } from '../../protocol/tool-calls.js'
import type { Tool } from '../../tools/tool.js'
import type { referenceSchema } from './schemas.js'

/** When the calls of a tool run in the background. */
export type BackgroundMode = 'never' | 'choice' | 'always'

/** Options of `tasks.background`. */
export interface BackgroundOptions<Mode extends BackgroundMode = BackgroundMode> {
  /** `never`: the tool stays as it is. `choice`: the model sets `run_in_background`. `always`: every call returns at once. */
  readonly mode: Mode
  /** With `choice`: after how many seconds a call in the foreground moves to the background; -1 for never. Default: that of the host. */
  readonly afterSeconds?: number
  /** The name of the tool, for its tasks. Default: its own; a tool of the AI SDK has none. */
  readonly name?: string
  /** The owner of the tasks. Default: that of the host. */
  readonly owner?: string
  /** The task to whose run the tasks belong. Default: none. */
  readonly parentId?: string
}

/** What a call returns whose tool runs in the background: the id of the task, its status then, and how the result comes, for a model. @useDeclaredType */
export type BackgroundTask = z.output<ReturnType<typeof referenceSchema>>

/** A tool of an MCP server: its definition as `listTools` of a client returns it, and a function that calls it. */
export interface McpTool {
  /** The name. */
  readonly name: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: object
  /** JSON Schema of `structuredContent`. */
  readonly outputSchema?: object | undefined
  /** Calls it: `(args, options) => client.callTool({ name, arguments: args }, options)`. */
  call(
    args: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: (progress: z.output<typeof callProgressSchema>) => void },
  ): Promise<{ content: { type: string; text?: string }[]; structuredContent?: unknown; isError?: boolean | undefined }>
}

/** The same tool: its input has the parameter (`Added`), and its result may be a `BackgroundTask`. */
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
