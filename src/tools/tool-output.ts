/**
 * The structured content of results, for MCP clients. Its field `text` is for the model, because some clients show the model only the structured
 * content. The other fields are for programs. They are few, so that a result stays within its size limit, and have no descriptions, because every client
 * pays for the schemas of all tools.
 */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'

type Metadata = Readonly<Record<string, unknown>>

export interface ToolOutput {
  readonly schema: z.ZodObject
  /** Makes the fields from the metadata of a result. `text` is added later. */
  readonly fieldsOf: (metadata: Metadata) => Metadata
}

/** One field: where its value is in the metadata (a name or a function), and its schema. If the value is undefined, the field is left out. */
export type OutputField = readonly [from: string | ((metadata: Metadata) => unknown), schema: z.ZodType]

export type OutputFields = Readonly<Record<string, OutputField>>

/** Creates the structured content with these fields, in this order. */
export function outputOf(fields: OutputFields): ToolOutput {
  const entries = Object.entries(fields)
  return {
    schema: z.object({ text: z.string(), ...Object.fromEntries(entries.map(([name, [, schema]]) => [name, schema])) }),
    fieldsOf: (metadata) =>
      Object.fromEntries(
        entries
          .map(([name, [from]]) => [name, typeof from === 'string' ? metadata[from] : from(metadata)] as const)
          .filter(([, value]) => value !== undefined),
      ),
  }
}

export const launchedFields = lazily((): OutputFields => ({
  task_id: ['agentId', z.string().optional()],
  status: ['status', z.string().optional()],
  async: ['async', z.boolean().optional()],
}))

/** The fields of a call whose deadline was reduced to the limit. */
export const clampedFields = lazily((): OutputFields => ({
  timeout_clamped: ['timeoutClamped', z.boolean().optional()],
  requested_timeout_seconds: ['requestedTimeoutSeconds', z.number().optional()],
}))
