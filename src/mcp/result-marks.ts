/** Adds marks about stored results to answers: which messages carry them, which of them may be repeats, and which tasks an earlier server launched. */
import { z } from 'zod'
import { idList } from '../data/id-list.js'
import { canBeWaitedFor, visibleTasks } from '../features/task-ids/task-lookup.js'
import type { Backend } from './backend.js'
import type { McpResult } from './mcp-tool.js'
import { addText, isToolResult, type CarriedResults } from './carried-results.js'

/** The maximum number of ids in one field. */
const MAX_IDS = 1000

/** A list of ids. The schema has no description, because every client pays for the schemas of all tools in each turn. */
const ids = z.unknown().optional()

/** The fields that are added to the structured content of every tool when there is a store. */
const markFields = { delivery_ids: ids, possible_repeats: ids, earlier_session: ids }

/** Adds the marks to the output schema of a tool. */
export const withMarks = (outputSchema: z.ZodObject): z.ZodObject => outputSchema.extend(markFields)

/** Adds the marks to an answer that is about to be written. */
export function markResult(result: McpResult, carried: CarriedResults, backend: Backend, owner: string): McpResult {
  const { manager, session } = backend
  if (session === undefined || !isToolResult(result)) return result
  const { reads } = manager
  const entries = carried.taskIds.flatMap((id) => reads.history.get(id) ?? [])
  const shown = [...carried.taskIds, ...shownIn(result.structuredContent as Fields | undefined, backend, owner)]
  const earlier = unique(shown.filter((id) => session.earlierTasks.has(id)))
  const fields = Object.entries({
    delivery_ids: unique(
      entries.flatMap(({ lease, record }) => (record.delivery === 'leased' ? (lease?.id ?? []) : [])),
    ),
    possible_repeats: entries.filter(({ record }) => record.isRepeat === true).map(({ record }) => record.id),
    earlier_session: earlier,
  }).filter(([, values]) => values.length > 0)
  const answer = earlier.length === 0 ? result : addText(result, earlierText(earlier))
  if (answer.structuredContent === undefined) return answer
  const marks = Object.fromEntries(fields.map(([name, values]) => [name, values.slice(0, MAX_IDS)]))
  return { ...answer, structuredContent: { ...answer.structuredContent, ...marks } }
}

/** Names the tasks that an earlier server of the session launched. */
export const earlierText = (taskIds: readonly string[]): string =>
  `From an earlier server of this session: ${idList(taskIds)}.`

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
