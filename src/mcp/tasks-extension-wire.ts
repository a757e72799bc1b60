/** The wire format of the Tasks extension (SEP-2663, `io.modelcontextprotocol/tasks`): names, shapes and capabilities. */
import type { ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { showsForms, type WireInputRequest } from './question-forms.js'

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** The capabilities that error -32021 asks for. */
export const REQUIRED_CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} } }

export type WireStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** The fields of every task. A type, not an interface, because the SDK's results have an index signature. */
export type WireTask = {
  readonly taskId: string
  readonly status: WireStatus
  readonly statusMessage?: string
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. */
  readonly lastUpdatedAt: string
  /** The time to live, in ms from the creation; null while the task runs without a deadline. */
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
}

/** The fields that `tasks/get` adds, depending on the status. */
export type WireDetails = {
  readonly inputRequests?: Readonly<Record<string, WireInputRequest>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

const taskId = z.string().min(1).max(1024)

/** The parameters of `tasks/get` and `tasks/cancel`, and of `tasks/result` of 2025-11-25. */
export const taskParamsSchema = z.looseObject({ taskId })

/** The parameters of `tasks/update`. `inputResponses` may have any values, because each is checked later by the schema of its question. */
export const updateParamsSchema = z.looseObject({
  taskId,
  inputResponses: z.record(z.string(), z.unknown()).optional(),
})

/** The capabilities that one request declares. They apply to that request only. */
export interface DeclaredCapabilities {
  readonly hasTasks: boolean
  readonly hasElicitation: boolean
}

export function declaredBy({ mcpReq: { envelope } }: ServerContext): DeclaredCapabilities {
  const capabilities: unknown = (envelope as Readonly<Record<string, unknown>> | undefined)?.[META_CAPABILITIES]
  const { extensions, elicitation } = (capabilities ?? {}) as {
    readonly extensions?: Readonly<Record<string, unknown>>
    readonly elicitation?: Readonly<Record<string, unknown>>
  }
  return { hasTasks: extensions?.[TASKS_EXTENSION] !== undefined, hasElicitation: showsForms(elicitation) }
}
