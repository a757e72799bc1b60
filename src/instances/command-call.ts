/** Calls a tool of a connected instance, for a command or for an MCP request. */
import type { WorkContext } from '../engine/engine.js'
import type { TaskProgress } from '../../machines/records.js'
import { AgentTasksError, InstanceError, ToolCallError } from '../errors.js'
import { preview } from '../text/preview.js'
import type { TaskCommand } from '../protocol/command-tasks.js'
import { describeFailure } from '../protocol/outcomes.js'
import { parseJson } from '../json/parse-json.js'
import { MAX_LEVELS, toPlainData } from '../json/plain-data.js'
import type { TraceContext } from '../protocol/telemetry.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import type { ToolCall } from './instance.js'
import type { InstanceEntry } from './instance-manager.js'

/** A command of a task. */
export interface CommandCall {
  /** The instance that the task was submitted to. */
  readonly instance: InstanceEntry
  readonly taskId: string
  readonly command: TaskCommand
  /** The span of the call. */
  readonly trace?: TraceContext | undefined
  /** Called with the progress of the call. */
  readonly onProgress: (progress: TaskProgress) => void
}

/**
 * Performs a command; resolves with the result of the tool.
 * @throws ToolCallError with the tool's own code and message; InstanceError when the instance is gone
 */
export async function performCommand(call: CommandCall, context: WorkContext): Promise<ToolCallResult> {
  let result: ToolCallResult
  try {
    result = await callTool(call.instance, new CommandToolCall(call, context))
  } catch (error) {
    throw commandError(error)
  }
  if (result.isError === true) throw errorOf(result)
  return result
}

/** A command as a call. The signal is an own property and `isAborted` is not, so that a copy (`{ ...call }`) uses its own signal. */
class CommandToolCall implements ToolCall {
  // Shared, because V8 creates a hidden class for each getter function.
  static readonly #signal: PropertyDescriptor & ThisType<CommandToolCall> = {
    get() {
      return this.#context.signal
    },
    enumerable: true,
    configurable: true,
  }
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly taskId: string
  readonly commandId: string
  declare readonly signal: AbortSignal
  declare readonly trace?: TraceContext
  readonly onProgress: (progress: TaskProgress) => void
  readonly #context: WorkContext

  constructor({ instance, taskId, command, trace, onProgress }: CommandCall, context: WorkContext) {
    this.name = command.tool_name
    this.arguments = argumentsFor(instance, command.args)
    this.taskId = taskId
    this.commandId = command.id
    this.onProgress = onProgress
    this.#context = context
    Object.defineProperty(this, 'signal', CommandToolCall.#signal)
    if (trace !== undefined) this.trace = trace
  }

  isAborted(): boolean {
    return this.#context.aborted ?? this.#context.signal.aborted
  }
}

/** The arguments of a call. A remote worker also gets the id under which it is registered. */
export function argumentsFor(
  { id, instance }: InstanceEntry,
  args: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return instance.passesInstanceId === true ? { ...args, instanceId: id } : args
}

/**
 * Calls a tool. Resolves with a frozen copy of its result. The result is checked, because users may implement instances.
 * @throws InstanceError when the instance is not connected
 */
export async function callTool(entry: InstanceEntry, call: ToolCall): Promise<ToolCallResult> {
  const { id, isConnected } = entry
  if (!isConnected) throw new InstanceError('INSTANCE_DISCONNECTED', id, `Instance not connected: ${id}`)
  const result = await answerOf(entry, call)
  if (!Array.isArray(result?.content)) {
    const got = result === undefined || result === null ? 'got nothing' : `content: got ${preview(result.content)}`
    throw new TypeError(
      `Instance ${preview(id)} answered with no result of a tool: ${got}, expected an array of content.`,
    )
  }
  // An object of a class may have its content in a getter, which a copy of its own fields lacks.
  return toPlainData({ ...result, content: result.content }) as ToolCallResult
}

/** A host's own instance may return any value. */
async function answerOf(entry: InstanceEntry, call: ToolCall): Promise<Partial<ToolCallResult> | null | undefined> {
  try {
    return await entry.instance.callTool(call)
  } finally {
    entry.noteActivity()
  }
}

/** An error with the code that its command fails with. */
function commandError(error: unknown): AgentTasksError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    const code = ownCode(error.data)
    return code === undefined ? error : new ToolCallError(code, error.message, error.data)
  }
  return error instanceof AgentTasksError ? error : new ToolCallError('EXECUTION_ERROR', describeFailure(error))
}

/** The error of a failed result. Its text may be JSON that has the error as an object. */
function errorOf(result: ToolCallResult): ToolCallError {
  const text = textOf(result)
  const inText = errorInJson(text)
  const message = ownMessage(inText) ?? text
  return new ToolCallError(codeOf(result) ?? ownCode(inText) ?? 'EXECUTION_ERROR', message)
}

/** The code of a failed result. MCP has no field for it, so tools use one of two places. */
function codeOf({ structuredContent, _meta }: ToolCallResult): string | undefined {
  return ownCode(structuredContent) ?? ownCode(structuredContent?.['error']) ?? ownCode(_meta)
}

/** The maximum length of a text that is parsed as JSON, in characters. */
const MAX_JSON_CHARS = 64 * 1024

/** The field `error` of a text such as `{"error":{"code":"NOT_FOUND","message":"There is no e7."}}`. */
function errorInJson(text: string): unknown {
  if (!text.startsWith('{') || text.length > MAX_JSON_CHARS) return undefined
  const parsed = parseJson(text, MAX_LEVELS)
  const { value } = 'value' in parsed ? parsed : { value: undefined }
  return typeof value === 'object' && value !== null && 'error' in value ? value.error : undefined
}

function ownMessage(error: unknown): string | undefined {
  const message: unknown = typeof error === 'object' && error !== null && 'message' in error ? error.message : error
  return typeof message === 'string' && message.trim() !== '' ? message : undefined
}

function ownCode(from: unknown): string | undefined {
  const code: unknown = typeof from === 'object' && from !== null && 'code' in from ? from.code : undefined
  if (typeof code === 'number') return String(code)
  return typeof code === 'string' && code !== '' ? code : undefined
}

function textOf({ content }: ToolCallResult): string {
  const texts = content.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : []))
  return texts.join('\n').trim() || 'The tool reported an error without saying which.'
}
