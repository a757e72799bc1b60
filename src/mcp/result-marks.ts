/** Adds marks about stored results to answers: which messages carry them, which of them may be repeats, and which tasks an earlier server launched. */
import { z } from 'zod'
import { canBeWaitedFor, visibleTasks } from '../async-tasks/task-lookup.js'
import type { Backend } from './backend.js'
import type { McpResult, McpTool } from './mcp-tool.js'
import { isToolResult, withText, type CarriedResults } from './carried-results.js'

/** The maximum number of ids in one field. */
const MAX_IDS = 1000

/** The maximum number of ids in a text. */
const MAX_SHOWN = 20

/** A list of ids. The schema has no description, because every client pays for the schemas of all tools in each turn. */
const ids = z.unknown().optional()

/** The fields that are added to the structured content of every tool when there is a store. */
const markFields = { delivery_ids: ids, possible_repeats: ids, earlier_session: ids }

const markedSchemas = new WeakMap<z.ZodObject, z.ZodObject>()

/**
 * Adds the marks to the output schema of a tool. The new schemas are cached, because every client gets its own tools, but the schemas of the tools are
 * shared.
 */
export function withMarks(tool: McpTool): McpTool {
  const { outputSchema } = tool
  if (!(outputSchema instanceof z.ZodObject)) return tool
  let marked = markedSchemas.get(outputSchema)
  if (marked === undefined) markedSchemas.set(outputSchema, (marked = outputSchema.extend(markFields)))
  return { ...tool, outputSchema: marked }
}

/** Adds the marks to an answer that is about to be written. */
export function markResult(result: McpResult, carried: CarriedResults, backend: Backend, owner: string): McpResult {
  const { manager, session } = backend
  if (session === undefined || !isToolResult(result)) return result
  const { reads } = manager
  const entries = carried.taskIds.flatMap((id) => reads.history.get(id) ?? [])
  const structured = result.structuredContent as Fields | undefined
  const shown = [...carried.taskIds, ...shownIn(structured, backend, owner)]
  const earlier = unique(shown.filter((id) => session.earlierTasks.has(id)))
  const fields = Object.entries({
    delivery_ids: unique(
      entries.flatMap(({ lease, record }) => (record.delivery === 'leased' ? (lease?.id ?? []) : [])),
    ),
    possible_repeats: entries.filter(({ record }) => record.isRepeat === true).map(({ record }) => record.id),
    earlier_session: earlier,
  }).filter(([, values]) => values.length > 0)
  const text = earlier.length === 0 ? undefined : earlierText(earlier)
  return {
    ...result,
    content: text === undefined ? result.content : [...result.content, { type: 'text', text }],
    ...(structured !== undefined && {
      structuredContent: {
        ...(text === undefined ? structured : withText(structured, text)),
        ...Object.fromEntries(fields.map(([name, values]) => [name, values.slice(0, MAX_IDS)])),
      },
    }),
  }
}

/** Names the tasks that an earlier server of the session launched. */
export function earlierText(taskIds: readonly string[]): string {
  const more = taskIds.length > MAX_SHOWN ? ` and ${taskIds.length - MAX_SHOWN} more` : ''
  return `From an earlier server of this session: ${taskIds.slice(0, MAX_SHOWN).join(', ')}${more}.`
}

type Fields = Readonly<Record<string, unknown>>

/**
 * The ids of the tasks in the structured content of an answer. A list of tasks has counts instead of ids: it stands for the tasks whose results the
 * client has not received yet.
 */
function shownIn(structured: Fields = {}, { manager }: Backend, owner: string): string[] {
  const { task_id, settled, pending, counts } = structured
  const named = [task_id, ...listOf(settled), ...listOf(pending)].filter((id) => typeof id === 'string')
  if (counts === undefined) return named
  const expected = visibleTasks(manager, owner).filter(canBeWaitedFor)
  return [...named, ...expected.map(({ id }) => id)]
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const unique = (list: readonly string[]): string[] => [...new Set(list)]
