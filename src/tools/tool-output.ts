/**
 * The structured content of a tool's results, for MCP clients. `text` is for the model, because some clients only show it the structured
 * content; the other fields are for programs, and few, so that a result stays within its size limit. They have no descriptions, because every client
 * pays for the schemas of every tool.
 */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'

type Metadata = Readonly<Record<string, unknown>>

/** The structured content of one tool. */
export interface ToolOutput {
  readonly schema: z.ZodObject
  /** Derives it from the metadata of the tool's result; `text` is added. */
  readonly fieldsOf: (metadata: Metadata) => Metadata
}

/** One field: its source in the metadata (a name or a function), and its schema. The field is left out when the source is undefined. */
export type OutputField = readonly [from: string | ((metadata: Metadata) => unknown), schema: z.ZodType]

export type OutputFields = Readonly<Record<string, OutputField>>

/** The structured content with these fields, in this order. */
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

/** The fields of all tools that launch a task. */
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
