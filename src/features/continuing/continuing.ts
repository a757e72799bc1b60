/**
 * Continues an ended task with a new task of the same subagent and owner. The new run receives the result of the ended task (`context.previous`).
 * Only one task at a time may continue a task or a session of a subagent, and only after the earlier run has ended.
 */
import { runOfOwner } from '../../../machines/run-owner.js'
import type { ActiveTaskInfo, AsyncTaskInfo, SettledTaskInfo } from '../../../machines/records.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { termsOf } from '../../../machines/task-record.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { toFlatRunner } from '../../engine/definition.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import { restorableRecordSchema } from '../../protocol/record-fields.js'
import { parseInput } from '../../protocol/parse.js'
import { cutText } from '../../data/cut-text.js'
import { preview } from '../../data/preview.js'
import { resultChars, toDependencyResult } from '../dependencies/dependency-result.js'
import { livingOwner } from '../families/families.js'
import type { Feature } from '../../async-tasks/feature.js'
import type { Launcher } from '../../async-tasks/launching.js'
import { messageSchema } from '../questions/messages.js'
import { turnLaunches } from '../kept-turns/turn-launches.js'
import { prunedTasks } from '../history/pruned-tasks.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { currentRuns, launches, runs } from '../../async-tasks/run-plan.js'
import { prunedText } from '../task-ids/task-lookup.js'

/** @throws INVALID_INPUT, AgentTasksError `NOT_CONTINUED`, and the errors of a launch */
export function continueTask(launcher: Launcher, task: string | SettledTaskInfo, message: string): ActiveTaskInfo {
  const { registry } = launcher
  const { history } = registry
  const goalPrompt = parseInput(messageSchema(), message, 'message')
  const { record, kept } = find(registry, task)
  const { id, subagentName, goalPrompt: goal, session } = record
  const refuse = (reason: string): never => {
    throw new AgentTasksError('NOT_CONTINUED', `Task ${preview(id)} cannot be continued: ${reason}.`)
  }
  if (!isTerminal(record)) return refuse(`it has not ended: it is ${record.status}`)
  if (record.kind === 'command' || record.isNote === true) {
    return refuse('it is a command or a note, so no subagent has run it')
  }
  const launched = registry.use(turnLaunches).take({ subagentName, goalPrompt, continues: id })
  if (launched !== undefined) return launched.record as ActiveTaskInfo
  const { unsettled } = registry.use(runs)
  for (const entry of history.entries()) {
    const { record: other } = entry
    const isSame = other.id === id || other.continues === id || hasSameSession(other, record)
    const run = currentRuns.get(entry)
    if (!isSame || (entry.ref === undefined && (run === undefined || !unsettled.has(run)))) continue
    return refuse(other.id === id ? 'its run is still ending' : `task ${preview(other.id)} already continues it`)
  }
  const runner = (kept && launches.get(kept)?.runner) ?? launcher.findRunner(subagentName)
  if (runner === undefined) return refuse(`no subagent ${preview(subagentName)} is known`)
  const maxChars = resultChars(1)
  const end = toDependencyResult(record, maxChars)
  const { completedAt: endedAt, continues } = record
  const rest = omitUndefined({ continues, session })
  const previous = Object.freeze({ id, goal: cutText(goal, maxChars), endedAt, ...end, ...rest })
  const why: unknown = toFlatRunner(runner, 'runner').whyNotContinue?.(previous)
  if (why !== undefined) return refuse(typeof why === 'string' && why !== '' ? why : 'its subagent does not allow it')
  const owner = livingOwner(
    record,
    (runId) => history.get(runId)?.record ?? refuse(`task ${preview(runId)}, whose run owned it, is no longer known`),
    (runId) => history.get(runId)?.ref !== undefined,
  )
  const input = { subagentName, goalPrompt, owner, ...termsOf(record) }
  const parent = history.get(runOfOwner(owner) ?? '')
  return registry.use(continuing).launching(owner, () => launcher.launch(input, runner, undefined, parent, previous))
}

type Launching = (owner: string, launch: () => ActiveTaskInfo) => ActiveTaskInfo

/** The function that launches a continuation. An MCP server replaces it, to count continuations among the launches of its client. */
export const continuing = (): Feature & { launching: Launching } => ({ launching: (_owner, launch) => launch() })

const hasSameSession = (one: AsyncTaskInfo, other: AsyncTaskInfo): boolean =>
  one.session !== undefined && one.session.id === other.session?.id && one.subagentName === other.subagentName

/**
 * Finds a task by id or record, with its entry if it is kept.
 * @throws INVALID_INPUT
 */
function find(registry: TaskRegistry, task: string | SettledTaskInfo): { record: AsyncTaskInfo; kept?: TaskEntry } {
  const past = typeof task === 'string' ? undefined : parseInput(restorableRecordSchema(), task, 'task')
  const kept = registry.history.get(past?.id ?? (task as string))
  // A task in the history may have the same id as a kept task. Their launch times distinguish them.
  if (kept !== undefined && (past?.launchedAt ?? kept.record.launchedAt) === kept.record.launchedAt) {
    return { record: kept.record, kept }
  }
  if (past !== undefined) return { record: past as SettledTaskInfo }
  const pruned = registry.use(prunedTasks).find(task as string)
  const expected = 'the id of a task that is kept, or a record of the history'
  throw new InvalidInputError('task', task, pruned ? `${expected}. ${prunedText(pruned)}` : expected)
}
