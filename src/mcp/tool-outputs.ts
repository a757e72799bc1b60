/**
 * What the tools give back as structured content. `text` is what the model is to read: some clients show it nothing but
 * the structured content. The rest is the little that a program needs, so that it stays bounded.
 */
import type { CallToolResult } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ToolResult } from '../tools/tool.js'

const text = z.string().describe('For the model.')
const taskId = z.string().describe('The ID of the task.')
const status = z.enum(['running', 'completed', 'failed', 'cancelled'])
const bytes = z.number().describe('In bytes.')

/** The most ids that one result lists. */
const MAX_IDS = 1000

export const launchOutput = z.object({
  text,
  task_id: taskId.optional(),
  status: status.optional(),
  async: z.boolean().optional().describe('Whether the task goes on in the background.'),
  timeout_seconds: z.number().optional().describe('Its deadline; -1 for none.'),
  instance_id: z.string().optional(),
  queue_position: z.number().optional(),
})

export const checkOutput = z.object({
  text,
  task_id: taskId.optional(),
  status: status.optional(),
  is_asking: z.boolean().optional().describe('Whether the task waits for an answer.'),
  counts: z
    .object({ running: z.number(), completed: z.number(), failed: z.number(), cancelled: z.number() })
    .optional()
    .describe('How many tasks there are.'),
  next_cursor: bytes.optional(),
  remaining_bytes: bytes.optional(),
})

export const waitOutput = z.object({
  text,
  settled: z.array(z.string()).describe('The IDs of the tasks that have ended.'),
  pending: z.array(z.string()).describe('The IDs of the tasks that have not.'),
})

export const cancelOutput = z.object({ text, task_id: taskId, status, cancelled: z.boolean() })

export const answerOutput = z.object({ text, task_id: taskId, question_id: z.string(), answered: z.boolean() })

export const readOutput = z.object({
  text,
  task_id: taskId,
  start: bytes,
  next_cursor: bytes,
  skipped_bytes: bytes,
  remaining_bytes: bytes,
})

export const instancesOutput = z.object({
  text,
  instances: z
    .array(
      z.object({
        id: z.string(),
        state: z.enum(['connecting', 'connected', 'failed']),
        tools: z.array(z.string()).optional().describe('The names of its tools.'),
        error: z.string().optional(),
      }),
    )
    .describe('In the order in which they are configured.'),
})

type Metadata = Readonly<Record<string, unknown>>

/** How a tool's metadata becomes its structured content. */
export const structure = {
  launch: (m: Metadata) => ({
    ...pick(m, { task_id: 'agentId', status: 'status', async: 'async', timeout_seconds: 'effectiveTimeoutSeconds' }),
    ...pick(m, { instance_id: 'instanceId', queue_position: 'queuePosition' }),
  }),
  check: (m: Metadata) => ({
    ...pick(m, { task_id: 'id', status: 'status', next_cursor: 'nextCursor', remaining_bytes: 'remainingBytes' }),
    ...pick(m, { task_id: 'task_id' }),
    ...('status' in m && { is_asking: m['questions'] !== undefined }),
    ...('running' in m && {
      counts: pick(m, { running: 'running', completed: 'completed', failed: 'failed', cancelled: 'cancelled' }),
    }),
  }),
  wait: (m: Metadata) => ({ settled: ids(m['settled']), pending: ids(m['pending']) }),
  cancel: (m: Metadata) => pick(m, { task_id: 'id', status: 'status', cancelled: 'cancelled' }),
  answer: (m: Metadata) => pick(m, { task_id: 'id', question_id: 'question_id', answered: 'isAnswered' }),
  read: (m: Metadata) => ({
    ...pick(m, { task_id: 'task_id', start: 'start', next_cursor: 'nextCursor' }),
    ...pick(m, { skipped_bytes: 'skippedBytes', remaining_bytes: 'remainingBytes' }),
  }),
} satisfies Record<string, (metadata: Metadata) => Metadata>

/** The result of a neutral tool in MCP's words. A failure has no structured content: it would not fit the schema. */
export function toCallToolResult(result: ToolResult, structured: (metadata: Metadata) => Metadata): CallToolResult {
  const { llmContent, metadata = {}, error } = result
  const content: CallToolResult['content'] = [{ type: 'text', text: llmContent }]
  if (error !== undefined) return { content, isError: true, _meta: { code: error.type } }
  return { content, structuredContent: { text: llmContent, ...structured(metadata) } }
}

function pick(from: Metadata, names: Readonly<Record<string, string>>): Metadata {
  return Object.fromEntries(Object.entries(names).flatMap(([to, name]) => (name in from ? [[to, from[name]]] : [])))
}

function ids(value: unknown): string[] {
  return Array.isArray(value) ? (value.slice(0, MAX_IDS) as string[]) : []
}
