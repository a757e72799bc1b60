/** Reads the history: tasks that have ended, including those that only the store still has. */
import { z } from 'zod'
import type { SettledTaskInfo } from '../../../machines/records.js'
import { TERMINAL_STATUSES } from '../../../machines/task-status.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InvalidInputError } from '../../errors.js'
import { toJsonText } from '../../data/json-text.js'
import type { Task } from '../../protocol/command-tasks.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'
import { cutText } from '../../data/cut-text.js'
import { asyncKey } from '../../page/async-entry.js'
import { commandKey } from '../../page/command-entry.js'
import type { PageFeature, PageParts } from '../../page/page-feature.js'
import type { PageHistory, PastTaskRow } from '../../page/wire.js'

/** The number of tasks on one page of the history, and the maximum lengths of their texts in characters. */
const PAGE = { tasks: 50, titleChars: 200, errorChars: 2000, resultChars: 20_000 } as const

/** The maximum length of a name in a filter, in characters. */
const MAX_NAME = 1000

/** The name of an owner, a subagent or an instance. An empty name means no filter. */
const filterName = () => z.string().max(MAX_NAME).optional()

const querySchema = lazily(() =>
  strictObject({
    kind: z.enum(['async', 'command']).optional(),
    text: z.string().optional(),
    status: z.enum(['', ...TERMINAL_STATUSES]).optional(),
    owner: filterName(),
    subagent: filterName(),
    instance: filterName(),
    before: z.string().optional(),
  }),
)

export const historyPage: PageFeature = { queries: { history: readHistory } }

/**
 * Returns one page of the history, the latest task first.
 * @throws INVALID_INPUT for an unknown or wrong query parameter
 * @throws StoreError if the history cannot be read
 */
async function readHistory(page: PageParts, parameters: URLSearchParams): Promise<PageHistory> {
  const { manager, taskManager } = page
  const { kind, text, status, before, ...names } = parseInput(querySchema(), Object.fromEntries(parameters), 'query')
  const given: Partial<Record<keyof typeof names, string>> = Object.fromEntries(
    Object.entries(names).filter(([, name]) => name !== ''),
  )
  const { instance, ...ofAgents } = given
  const query = {
    limit: PAGE.tasks,
    ...omitUndefined({ before }),
    ...(text !== undefined && text !== '' && { text }),
    ...(status !== undefined && status !== '' && { status }),
  }
  if (kind === 'command' || manager === undefined) {
    refuseOthers(ofAgents, 'instance')
    const { tasks = [], ...rest } =
      (await taskManager?.history({ ...query, ...omitUndefined({ instanceId: instance }) })) ?? {}
    return { ...rest, tasks: tasks.map((task) => commandRow(page, task)) }
  }
  refuseOthers(omitUndefined({ instance }), 'owner and subagent')
  const { tasks, ...rest } = await manager.history({ ...query, ...ofAgents })
  return { ...rest, tasks: tasks.map((task) => asyncRow(page, task)) }
}

/**
 * Refuses a filter that this kind of task does not have. Ignoring the filter would return all tasks.
 * @throws INVALID_INPUT
 */
function refuseOthers(names: object, known: string): void {
  const [first] = Object.entries(names) as [string, string][]
  if (first === undefined) return
  throw new InvalidInputError(
    `query.${first[0]}`,
    first[1],
    `no value, because tasks of this kind can be filtered by ${known} only`,
  )
}

function asyncRow({ manager }: PageParts, task: SettledTaskInfo): PastTaskRow {
  const { id, subagentName, goalPrompt, owner, status, launchedAt, completedAt, output, error } = task
  const message = output?.final_message
  const result = typeof message === 'string' ? message : output && toJsonText(output, { indent: 2 })
  return {
    key: asyncKey(id),
    kind: 'async',
    id,
    title: cutText(goalPrompt, PAGE.titleChars),
    group: owner,
    subagent: subagentName,
    state: status,
    createdAt: launchedAt,
    endedAt: completedAt,
    ...(result !== undefined && { result: cutText(result, PAGE.resultChars) }),
    ...(error !== undefined && { error: cutText(error, PAGE.errorChars) }),
    canRunAgain: manager?.findRunner(subagentName) !== undefined,
  }
}

function commandRow({ taskManager }: PageParts, task: Task): PastTaskRow {
  const { id, name, instanceId, status, createdAt, completedAt = createdAt, commands, error } = task
  const results = commands.map(({ tool_name, status: end, result, error: why }) =>
    omitUndefined({ tool: tool_name, status: end, result, error: why?.message }),
  )
  return {
    key: commandKey(id),
    kind: 'command',
    id,
    title: cutText(name, PAGE.titleChars),
    group: instanceId,
    state: status,
    createdAt,
    endedAt: completedAt,
    result: cutText(toJsonText(results, { indent: 2 }), PAGE.resultChars),
    ...(error !== undefined && { error: cutText(error.message, PAGE.errorChars) }),
    canRunAgain: taskManager?.instances.get(instanceId) !== undefined,
  }
}
