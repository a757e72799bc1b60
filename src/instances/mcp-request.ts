/** Answers MCP requests: finds the instance, calls the tool, and answers in JSON-RPC. */
import type { TaskProgress } from '../../machines/records.js'
import { defined } from '../defined.js'
import { AgentTasksError, InstanceError, ToolCallError } from '../errors.js'
import { preview } from '../text/preview.js'
import { describeFailure } from '../protocol/outcomes.js'
import { describeIssue } from '../protocol/parse.js'
import {
  JSON_RPC,
  mcpRequestSchema,
  UNKNOWN_TOOL,
  type MCPError,
  type MCPRequest,
  type MCPResponse,
} from '../protocol/tool-calls.js'
import { argumentsFor, callTool } from './command-call.js'
import type { InstanceEntry, InstanceManager } from './instance-manager.js'
import { instanceNotFound } from './not-found.js'

/** The context of a request. */
export interface MCPRequestContext {
  /** The instances that have the tools. */
  readonly instances: InstanceManager
  /** The instance to call. Default: the remote worker that the arguments name, or else the first connected instance. */
  readonly instanceId?: string
  /** Aborts the call. */
  readonly signal?: AbortSignal
  /** Called with the progress of the call. */
  readonly onProgress?: (progress: TaskProgress) => void
  /** The task that calls, if one does. */
  readonly taskId?: string
  /** The command that calls, if one does. */
  readonly commandId?: string
}

/**
 * Answers a `tools/call` request. Never rejects: every failure becomes a JSON-RPC error, with a non-numeric code in
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
  const { name, arguments: args = {} } = params
  const { instances, instanceId, taskId, commandId } = context
  const { signal = new AbortController().signal, onProgress = () => undefined } = context
  try {
    const entry = findInstance(instances, instanceId ?? namedWorker(instances, args['instanceId']))
    signal.throwIfAborted()
    const result = await callTool(entry, {
      name,
      arguments: argumentsFor(entry, args),
      signal,
      onProgress,
      ...defined({ taskId, commandId }),
    })
    return { jsonrpc: '2.0', id, result: { ...result, content: [...result.content] } }
  } catch (error) {
    return { jsonrpc: '2.0', id, error: toMCPError(error) }
  }
}

function findInstance(instances: InstanceManager, instanceId: string | undefined): InstanceEntry {
  const entry = instanceId === undefined ? instances.first() : instances.get(instanceId)
  if (entry !== undefined) return entry
  throw instanceId === undefined
    ? new InstanceError('INSTANCE_UNKNOWN', '', 'No instance is connected')
    : new InstanceError(
        'INSTANCE_UNKNOWN',
        instanceId,
        instanceNotFound(
          instanceId,
          instances.list().map(({ id }) => id),
        ),
      )
}

/** A tool of another kind may have its own parameter `instanceId`. */
function namedWorker(instances: InstanceManager, value: unknown): string | undefined {
  return typeof value === 'string' && instances.get(value)?.instance.passesInstanceId === true ? value : undefined
}

function toMCPError(error: unknown): MCPError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    return { code: error.number, message: error.message, ...defined({ data: error.data }) }
  }
  if (error instanceof ToolCallError) {
    const data = typeof error.data === 'object' ? error.data : { data: error.data }
    const code = error.code === UNKNOWN_TOOL ? JSON_RPC.unknownTool : JSON_RPC.failed
    return { code, message: error.message, data: { ...data, code: error.code } }
  }
  if (error instanceof AgentTasksError) {
    return { code: JSON_RPC.failed, message: error.message, data: { code: error.code } }
  }
  return { code: JSON_RPC.internal, message: describeFailure(error), data: { code: 'EXECUTION_ERROR' } }
}

function idOf(request: unknown): string | number {
  const id: unknown = typeof request === 'object' && request !== null && 'id' in request ? request.id : undefined
  return typeof id === 'string' || typeof id === 'number' ? id : ''
}
