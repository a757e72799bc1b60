/** Commands as MCP requests: finds the instance, calls the tool, answers in JSON-RPC (seed 004). */
import { AgentTasksError, InstanceError, ToolCallError } from '../errors.js'
import type { Task } from '../protocol/command-tasks.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import { preview } from '../preview.js'
import {
  JSON_RPC,
  mcpRequestSchema,
  type MCPError,
  type MCPRequest,
  type MCPResponse,
  type ToolContent,
} from '../protocol/tool-calls.js'
import type { CallProgress, ToolCall } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import type { InstanceEntry, InstanceManager } from './instance-manager.js'

/** Where a request is answered, and on whose behalf. */
export interface MCPRequestContext {
  /** Who has the tools. */
  readonly instances: InstanceManager
  /** Whose tool is called. Default: the remote worker that the arguments name, or else the first connected instance. */
  readonly instanceId?: string
  /** Gives the call up when it aborts. */
  readonly signal?: AbortSignal
  /** Told how far the call has come. */
  readonly onProgress?: (progress: CallProgress) => void
  /** The task that calls, if one does. */
  readonly taskId?: string
  /** The command that calls, if one does. */
  readonly commandId?: string
}

/**
 * Answers a `tools/call` request. Never rejects: whatever goes wrong becomes a JSON-RPC error, with a code that is no number in
 * `error.data.code`.
 */
export async function handleMCPRequest(request: MCPRequest, context: MCPRequestContext): Promise<MCPResponse> {
  const parsed = mcpRequestSchema.safeParse(request)
  if (!parsed.success) {
    const { field, received, expected } = describeIssue(parsed.error, request, 'request')
    const message = `${field}: got ${preview(received)}, expected ${expected}.`
    return { jsonrpc: '2.0', id: idOf(request), error: { code: JSON_RPC.invalidRequest, message } }
  }
  const { id, params } = parsed.data
  try {
    const result = await callTool(params.name, params.arguments ?? {}, context)
    return { jsonrpc: '2.0', id, result }
  } catch (error) {
    return { jsonrpc: '2.0', id, error: toMCPError(error) }
  }
}

/**
 * Performs a command of a task; resolves with what the tool returned.
 * @throws ToolCallError with the tool's own code and message, InstanceError when the instance is gone
 */
export async function performCommand(
  instances: InstanceManager,
  task: Task,
  index: number,
  { signal, onProgress }: { readonly signal: AbortSignal; readonly onProgress: (progress: CallProgress) => void },
): Promise<ToolCallResult> {
  const command = task.commands[index]
  if (command === undefined) throw new RangeError(`task ${task.id} has no command ${index}`)
  // The command was checked when its task was submitted.
  let result: ToolCallResult
  try {
    result = await callTool(command.tool_name, command.args, {
      instances,
      instanceId: task.instanceId,
      signal,
      onProgress,
      taskId: task.id,
      commandId: command.id,
    })
  } catch (thrown) {
    const { code, message, data } = toMCPError(thrown)
    throw new ToolCallError(ownCode(data) ?? code, message, data)
  }
  if (result.isError === true) throw new ToolCallError(codeOf(result) ?? 'EXECUTION_ERROR', textOf(result))
  return result
}

async function callTool(
  name: string,
  args: Readonly<Record<string, unknown>>,
  context: MCPRequestContext,
): Promise<ToolCallResult & { readonly content: ToolContent[] }> {
  const { signal = new AbortController().signal, onProgress = () => undefined, taskId, commandId } = context
  const { id, instance } = findInstance(context, args)
  signal.throwIfAborted()
  const call: Mutable<ToolCall> = {
    name,
    arguments: instance.passesInstanceId === true ? { ...args, instanceId: id } : args,
    signal,
    onProgress,
  }
  if (taskId !== undefined) call.taskId = taskId
  if (commandId !== undefined) call.commandId = commandId
  const result = (await instance.callTool(call)) as Partial<ToolCallResult> | null | undefined
  // Anybody may bring an instance of their own, whose results may be anything.
  const content = result?.content
  if (!Array.isArray(content)) {
    const got = result === undefined || result === null ? 'got nothing' : `content: got ${preview(content)}`
    throw new TypeError(
      `Instance ${preview(id)} answered with no result of a tool: ${got}, expected an array of content.`,
    )
  }
  return { ...result, content: [...(content as readonly ToolContent[])] }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

function findInstance(
  { instances, instanceId }: MCPRequestContext,
  args: Readonly<Record<string, unknown>>,
): InstanceEntry {
  const named = instanceId ?? namedWorker(instances, args['instanceId'])
  const entry = named === undefined ? instances.first() : instances.get(named)
  if (entry === undefined) {
    throw named === undefined
      ? new InstanceError('INSTANCE_UNKNOWN', '', 'No instance is connected')
      : new InstanceError('INSTANCE_UNKNOWN', named, `Instance not found: ${named}`)
  }
  if (!entry.isConnected) {
    throw new InstanceError('INSTANCE_DISCONNECTED', entry.id, `Instance not connected: ${entry.id}`)
  }
  return entry
}

/** A tool of another kind may have a parameter of that name with a meaning of its own. */
function namedWorker(instances: InstanceManager, value: unknown): string | undefined {
  return typeof value === 'string' && instances.get(value)?.instance.passesInstanceId === true ? value : undefined
}

function toMCPError(error: unknown): MCPError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    return { code: error.number, message: error.message, ...(error.data !== undefined && { data: error.data }) }
  }
  if (error instanceof ToolCallError) {
    const data = typeof error.data === 'object' ? error.data : { data: error.data }
    return { code: JSON_RPC.failed, message: error.message, data: { ...data, code: error.code } }
  }
  if (error instanceof AgentTasksError) {
    return { code: JSON_RPC.failed, message: error.message, data: { code: error.code } }
  }
  return { code: JSON_RPC.internal, message: describeFailure(error), data: { code: 'EXECUTION_ERROR' } }
}

/** The code that a failed result carries: MCP has no field for it, so tools put it in one of two places. */
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

function idOf(request: unknown): string | number {
  const id: unknown = typeof request === 'object' && request !== null && 'id' in request ? request.id : undefined
  return typeof id === 'string' || typeof id === 'number' ? id : ''
}
