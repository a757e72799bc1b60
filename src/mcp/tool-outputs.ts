/**
 * The structured content of tool results. `text` is what the model reads, since some clients show it only the structured content; the other
 * fields are for programs, and few, so that a result stays within its size limit. Their names say what they are: every client pays for
 * the descriptions of every tool.
 */
import type { CallToolResult } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ToolResult } from '../tools/tool.js'

type Metadata = Readonly<Record<string, unknown>>

/** The structured content of one tool. */
export interface ToolOutput {
  readonly schema: z.ZodType
  /** Derives it from the metadata of the tool's result; `text` is added. */
  readonly fieldsOf: (metadata: Metadata) => Metadata
}

const text = z.string()
const taskId = z.string()
/** One of `AsyncTaskStatus`. */
const status = z.string()
/** In bytes. */
const bytes = z.number()

/** The most ids in one result. */
const MAX_IDS = 1000

/** Of a call that asked for a longer deadline than there may be. */
const clampedFields = { timeout_clamped: z.boolean().optional(), requested_timeout_seconds: z.number().optional() }
const CLAMPED = { timeout_clamped: 'timeoutClamped', requested_timeout_seconds: 'requestedTimeoutSeconds' }

export const launchOutput: ToolOutput = {
  schema: z.object({
    text,
    task_id: taskId.optional(),
    status: status.optional(),
    async: z.boolean().optional(),
    timeout_seconds: z.number().optional(),
    ...clampedFields,
    instance_id: z.string().optional(),
    queue_position: z.number().optional(),
  }),
  fieldsOf: (m) =>
    pick(m, {
      ...{ task_id: 'agentId', status: 'status', async: 'async', timeout_seconds: 'effectiveTimeoutSeconds' },
      ...CLAMPED,
      ...{ instance_id: 'instanceId', queue_position: 'queuePosition' },
    }),
}

export const commandOutput: ToolOutput = {
  schema: z.object({
    ...{ text, task_id: taskId.optional(), status: status.optional() },
    ...{ async: z.boolean().optional(), exit_code: z.number().optional() },
    ended_processes: z.number().optional(),
    ...clampedFields,
  }),
  fieldsOf: (m) =>
    pick(m, {
      ...{ task_id: 'agentId', status: 'status', async: 'async', exit_code: 'exitCode' },
      ended_processes: 'endedProcesses',
      ...CLAMPED,
    }),
}

export const checkOutput: ToolOutput = {
  schema: z.object({
    text,
    task_id: taskId.optional(),
    status: status.optional(),
    is_asking: z.boolean().optional(),
    counts: z.record(z.string(), z.number()).optional(),
    next_cursor: bytes.optional(),
    remaining_bytes: bytes.optional(),
  }),
  fieldsOf: (m) => ({
    ...pick(m, { task_id: 'id', status: 'status', next_cursor: 'nextCursor', remaining_bytes: 'remainingBytes' }),
    ...pick(m, { task_id: 'task_id' }),
    ...('status' in m && { is_asking: m['questions'] !== undefined }),
    ...('running' in m && {
      counts: pick(m, {
        queued: 'queued',
        running: 'running',
        completed: 'completed',
        failed: 'failed',
        cancelled: 'cancelled',
      }),
    }),
  }),
}

export const waitOutput: ToolOutput = {
  schema: z.object({
    text,
    settled: z.array(z.string()),
    pending: z.array(z.string()),
  }),
  fieldsOf: (m) => ({ settled: idsOf(m['settled']), pending: idsOf(m['pending']) }),
}

export const cancelOutput: ToolOutput = {
  schema: z.object({ text, task_id: taskId, status, cancelled: z.boolean() }),
  fieldsOf: (m) => pick(m, { task_id: 'id', status: 'status', cancelled: 'cancelled' }),
}

export const answerOutput: ToolOutput = {
  schema: z.object({ text, task_id: taskId, question_id: z.string(), answered: z.boolean() }),
  fieldsOf: (m) => pick(m, { task_id: 'id', question_id: 'question_id', answered: 'isAnswered' }),
}

export const sendOutput: ToolOutput = {
  schema: z.object({ text, task_id: taskId, sent: z.boolean() }),
  fieldsOf: (m) => pick(m, { task_id: 'id', sent: 'sent' }),
}

export const readOutput: ToolOutput = {
  schema: z.object({
    text,
    task_id: taskId,
    start: bytes,
    next_cursor: bytes,
    skipped_bytes: bytes,
    remaining_bytes: bytes,
  }),
  fieldsOf: (m) =>
    pick(m, {
      ...{ task_id: 'task_id', start: 'start', next_cursor: 'nextCursor' },
      ...{ skipped_bytes: 'skippedBytes', remaining_bytes: 'remainingBytes' },
    }),
}

export const instancesOutput: ToolOutput = {
  schema: z.object({
    text,
    instances: z.array(
      z.object({
        id: z.string(),
        /** One of `PooledInstance`. */
        state: z.string(),
        tools: z.array(z.string()).optional(),
        error: z.string().optional(),
      }),
    ),
  }),
  fieldsOf: (m) => ({ instances: m['instances'] }),
}

/**
 * Converts the result of a neutral tool. An error has no structured content, since it would not match the output schema; that of a task that
 * the call has run does.
 */
export function toCallToolResult(result: ToolResult, { fieldsOf }: ToolOutput): CallToolResult {
  const { llmContent, metadata = {}, error } = result
  const content: CallToolResult['content'] = [{ type: 'text', text: llmContent }]
  const structured = { structuredContent: { text: llmContent, ...fieldsOf(metadata) } }
  if (error === undefined) return { content, ...structured }
  return { content, isError: true, _meta: { code: error.type }, ...('agentId' in metadata && structured) }
}

function pick(from: Metadata, names: Readonly<Record<string, string>>): Metadata {
  return Object.fromEntries(Object.entries(names).flatMap(([to, name]) => (name in from ? [[to, from[name]]] : [])))
}

function idsOf(value: unknown): string[] {
  return Array.isArray(value) ? (value.slice(0, MAX_IDS) as string[]) : []
}
