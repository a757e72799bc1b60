/** Answers an MCP request: finds the instance, calls the tool, and returns a JSON-RPC response. */
import type { TaskProgress } from '../../../machines/records.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { AgentTasksError, InstanceError, ToolCallError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { describeIssue } from '../../protocol/parse.js'
import {
  JSON_RPC,
  mcpRequestSchema,
  UNKNOWN_TOOL,
  type MCPError,
  type MCPRequest,
  type MCPResponse,
} from '../../protocol/tool-calls.js'
import { argumentsFor, callTool } from './command-call.js'
import type { InstanceEntry, InstanceManager } from './instance-manager.js'
import { instanceNotFound } from './not-found.js'

/** The instances, and how to make the call. */
export interface MCPRequestContext {
  /** The registered instances. */
  readonly instances: InstanceManager
  /**
   * The id of the instance to call. Default: the remote worker that the arguments name as `instanceId`. If they name no worker, the first connected
   * instance.
   */
  readonly instanceId?: string
  /** Aborts the call. */
  readonly signal?: AbortSignal
  /** Called with each progress report of the tool. */
  readonly onProgress?: (progress: TaskProgress) => void
  /** The id of the task that makes the call, if any. */
  readonly taskId?: string
  /** The id of the command that makes the call, if any. */
  readonly commandId?: string
}

/**
 * Answers a `tools/call` request. Never rejects: every failure becomes a JSON-RPC error. If the error has a code in words, `error.data.code` contains
 * it.
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
      ...omitUndefined({ taskId, commandId }),
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

/** Returns the remote worker that the arguments name. For other instances, `instanceId` may be a parameter of the tool itself. */
function namedWorker(instances: InstanceManager, value: unknown): string | undefined {
  return typeof value === 'string' && instances.get(value)?.instance.passesInstanceId === true ? value : undefined
}

function toMCPError(error: unknown): MCPError {
  if (error instanceof ToolCallError && error.number !== undefined) {
    return { code: error.number, message: error.message, ...omitUndefined({ data: error.data }) }
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
