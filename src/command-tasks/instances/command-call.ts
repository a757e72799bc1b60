/** Calls a tool of a connected instance, for a command of a task or for an MCP request. */
import type { WorkContext } from '../../engine/engine.js'
import type { TaskProgress } from '../../../machines/records.js'
import { AgentTasksError, InstanceError, ToolCallError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import type { TaskCommand } from '../../protocol/command-tasks.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { parseJson } from '../../data/parse-json.js'
import { MAX_LEVELS, toPlainData } from '../../data/plain-data.js'
import type { TraceContext } from '../../protocol/telemetry.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'
import type { ToolCall } from './instance.js'
import type { InstanceEntry } from './instance-manager.js'

export interface CommandCall {
  /** The instance that the task was submitted to. */
  readonly instance: InstanceEntry
  readonly taskId: string
  readonly command: TaskCommand
  /** The span of the call, for telemetry. */
  readonly trace?: TraceContext | undefined
  readonly onProgress: (progress: TaskProgress) => void
}

/**
 * Calls the tool of a command. Resolves with the result of the tool.
 * @throws AgentTasksError with the tool's own code and message when the tool fails
 * @throws AgentTasksError when the instance is not connected, or disconnects during the call
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

/**
 * The tool call of a command. `signal` is an own property, so that a copy (`{ ...call }`) keeps it. `isAborted` is not, so that a copy with another
 * signal does not use it.
 */
class CommandToolCall implements ToolCall {
  // All calls share one getter, because V8 would create a hidden class for each getter function.
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

/** Returns the arguments of a call. For a remote worker, the id of its instance is added as `instanceId`. */
export function argumentsFor(
  { id, instance }: InstanceEntry,
  args: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return instance.passesInstanceId === true ? { ...args, instanceId: id } : args
}

/**
 * Calls a tool. Resolves with a frozen copy of its result. The result is checked, because hosts may implement instances of their own.
 * @throws AgentTasksError when the instance is not connected
 * @throws TypeError when the instance returns something other than a tool result
 */
export async function callTool(entry: InstanceEntry, call: ToolCall): Promise<ToolCallResult> {
  const { id, isConnected } = entry
  if (!isConnected) throw new InstanceError('INSTANCE_DISCONNECTED', id, `Instance not connected: ${id}`)
  const result = await answerOf(entry, call)
  if (!Array.isArray(result?.content)) {
    const got = result === undefined || result === null ? 'got nothing' : `content: got ${preview(result.content)}`
    throw new TypeError(
      `Instance ${preview(id)} returned an invalid tool result: ${got}, expected an array of content.`,
    )
  }
  // If the result is an object of a class, `content` may be a getter of that class. A copy would lack it, so it is added explicitly.
  return toPlainData({ ...result, content: result.content }) as ToolCallResult
}

/** Calls the tool and records the activity of the instance. An instance that the host implements may return any value. */
async function answerOf(entry: InstanceEntry, call: ToolCall): Promise<Partial<ToolCallResult> | null | undefined> {
  try {
    return await entry.instance.callTool(call)
  } finally {
    entry.noteActivity()
  }
}

/** Converts an error to one whose `code` becomes the error code of the command. */
function commandError(error: unknown): AgentTasksError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    const code = ownCode(error.data)
    return code === undefined ? error : new ToolCallError(code, error.message, error.data)
  }
  return error instanceof AgentTasksError ? error : new ToolCallError('EXECUTION_ERROR', describeFailure(error))
}

/** Makes an error of a failed tool result. If the text of the result is JSON with a field `error`, code and message come from there. */
function errorOf(result: ToolCallResult): ToolCallError {
  const text = textOf(result)
  const inText = errorInJson(text)
  const message = ownMessage(inText) ?? text
  return new ToolCallError(codeOf(result) ?? ownCode(inText) ?? 'EXECUTION_ERROR', message)
}

/** Finds the error code in a failed result. MCP defines no field for it, so tools put it into `structuredContent` or `_meta`. */
function codeOf({ structuredContent, _meta }: ToolCallResult): string | undefined {
  return ownCode(structuredContent) ?? ownCode(structuredContent?.['error']) ?? ownCode(_meta)
}

/** The maximum length of a result text that is parsed as JSON, in characters. */
const MAX_JSON_CHARS = 64 * 1024

/** Returns the field `error` of a JSON text, such as `{"error":{"code":"NOT_FOUND","message":"There is no e7."}}`. */
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
