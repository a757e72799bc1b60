/** Calls a tool of a connected instance, for a command or for an MCP request. */
import type { WorkContext } from '../engine/engine.js'
import type { TaskProgress } from '../../machines/records.js'
import { AgentTasksError, InstanceError, ToolCallError } from '../errors.js'
import { preview } from '../preview.js'
import type { TaskCommand } from '../protocol/command-tasks.js'
import { describeFailure } from '../protocol/outcomes.js'
import { toFrozenResult, type ToolCallResult } from '../protocol/tool-result.js'
import type { ToolCall } from './instance.js'
import type { InstanceEntry, InstanceManager } from './instance-manager.js'

/** A command of a task. */
export interface CommandCall {
  readonly instanceId: string
  readonly taskId: string
  readonly command: TaskCommand
  /** Called with the progress of the call. */
  readonly onProgress: (progress: TaskProgress) => void
}

/**
 * Performs a command; resolves with the result of the tool.
 * @throws ToolCallError with the tool's own code and message; InstanceError when the instance is gone
 */
export async function performCommand(
  instances: InstanceManager,
  { instanceId, taskId, command, onProgress }: CommandCall,
  context: WorkContext,
): Promise<ToolCallResult> {
  let result: ToolCallResult
  try {
    const entry = connectedInstance(instances, instanceId)
    result = await callTool(entry, new CommandToolCall(entry, taskId, command, onProgress, context))
  } catch (error) {
    throw commandError(error)
  }
  if (result.isError === true) throw new ToolCallError(codeOf(result) ?? 'EXECUTION_ERROR', textOf(result))
  return result
}

/** A command as a call. The signal is an own property and `isAborted` is not: a copy (`{ ...call }`) asks the signal that it has. */
class CommandToolCall implements ToolCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly taskId: string
  readonly commandId: string
  declare readonly signal: AbortSignal
  readonly onProgress: (progress: TaskProgress) => void
  readonly #context: WorkContext

  constructor(
    entry: InstanceEntry,
    taskId: string,
    command: TaskCommand,
    onProgress: CommandCall['onProgress'],
    context: WorkContext,
  ) {
    this.name = command.tool_name
    this.arguments = argumentsFor(entry, command.args)
    this.taskId = taskId
    this.commandId = command.id
    this.onProgress = onProgress
    this.#context = context
    Object.defineProperty(this, 'signal', { get: () => context.signal, enumerable: true, configurable: true })
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

/** @throws InstanceError when it is unknown or not connected */
export function connectedInstance(instances: InstanceManager, instanceId: string | undefined): InstanceEntry {
  const entry = instanceId === undefined ? instances.first() : instances.get(instanceId)
  if (entry === undefined) {
    throw instanceId === undefined
      ? new InstanceError('INSTANCE_UNKNOWN', '', 'No instance is connected')
      : new InstanceError('INSTANCE_UNKNOWN', instanceId, `Instance not found: ${instanceId}`)
  }
  if (!entry.isConnected) {
    throw new InstanceError('INSTANCE_DISCONNECTED', entry.id, `Instance not connected: ${entry.id}`)
  }
  return entry
}

/** Calls a tool. Resolves with a frozen result, which is checked: users may bring instances of their own. */
export async function callTool({ id, instance }: InstanceEntry, call: ToolCall): Promise<ToolCallResult> {
  const result = (await instance.callTool(call)) as ToolCallResult | null | undefined
  if (!Array.isArray(result?.content)) {
    const got = result === undefined || result === null ? 'got nothing' : `content: got ${preview(result.content)}`
    throw new TypeError(
      `Instance ${preview(id)} answered with no result of a tool: ${got}, expected an array of content.`,
    )
  }
  return toFrozenResult(result)
}

/** An error with the code that its command fails with. */
function commandError(error: unknown): AgentTasksError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    const code = ownCode(error.data)
    return code === undefined ? error : new ToolCallError(code, error.message, error.data)
  }
  return error instanceof AgentTasksError ? error : new ToolCallError('EXECUTION_ERROR', describeFailure(error))
}

/** The code of a failed result: MCP has no field for it, so tools put it in one of two places. */
function codeOf({ structuredContent, _meta }: ToolCallResult): string | undefined {
  return ownCode(structuredContent) ?? ownCode(structuredContent?.['error']) ?? ownCode(_meta)
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
