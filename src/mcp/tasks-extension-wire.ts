/** The Tasks extension on the wire (SEP-2663, `io.modelcontextprotocol/tasks`): names, shapes, and who declared what. */
import type { ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** What a client lacks when it gets -32021. */
export const REQUIRED_CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} } }

export type WireStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** The fields that every task has. A type, as results have an index signature. */
export type WireTask = {
  readonly taskId: string
  readonly status: WireStatus
  readonly statusMessage?: string
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. */
  readonly lastUpdatedAt: string
  /** In ms from the creation; null while no end is in sight. */
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
}

/** What tasks/get says besides, by status. */
export type WireDetails = {
  readonly inputRequests?: Readonly<Record<string, WireInputRequest>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** A form elicitation, as a client would get it by itself. */
export type WireInputRequest = {
  readonly method: 'elicitation/create'
  readonly params: {
    readonly mode: 'form'
    readonly message: string
    readonly requestedSchema: Readonly<Record<string, unknown>>
  }
}

const taskId = z.string().min(1).max(1024)

/** The parameters of tasks/get and tasks/cancel. */
export const taskParamsSchema = z.looseObject({ taskId })

/** The parameters of tasks/update. What an answer must be depends on its question. */
export const updateParamsSchema = z.looseObject({
  taskId,
  inputResponses: z.record(z.string(), z.unknown()).optional(),
})

/** What a client declares counts for the request that carries it, and for no other. */
interface DeclaredCapabilities {
  readonly hasTasks: boolean
  /** Whether it can ask its user to fill in a form. */
  readonly hasElicitation: boolean
}

export function declaredBy({ mcpReq: { envelope } }: ServerContext): DeclaredCapabilities {
  const capabilities: unknown = (envelope as Readonly<Record<string, unknown>> | undefined)?.[META_CAPABILITIES]
  const { extensions, elicitation } = (capabilities ?? {}) as {
    readonly extensions?: Readonly<Record<string, unknown>>
    readonly elicitation?: Readonly<Record<string, unknown>>
  }
  // An empty declaration is one of forms.
  const hasForms = elicitation !== undefined && ('form' in elicitation || Object.keys(elicitation).length === 0)
  return { hasTasks: extensions?.[TASKS_EXTENSION] !== undefined, hasElicitation: hasForms }
}
