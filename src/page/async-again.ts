/** Runs an async task again: launches a new task with the same input. If the task continued another one, the new task continues that one, too. */
import { runOfOwner } from '../../machines/families.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import { holdsSlot } from '../../machines/task-status.js'
import { taskHistory } from '../async-tasks/history/past-tasks.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { launches } from '../async-tasks/run-plan.js'
import { defined } from '../defined.js'
import { withoutContextSchema } from '../engine/context-schema.js'
import { flatRunner } from '../engine/definition.js'
import type { Runner } from '../engine/runner.js'
import { asyncKey, type AsyncEntry } from './async-entry.js'
import { parsedKept } from './kept-values.js'
import { furtherOf, type FurtherInput } from './launched-input.js'
import { DISPOSED, NOT_IN_HISTORY } from './refusals.js'
import type { PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

const RUN_BY_HOST =
  'Its host runs it, or has run it by other means than a subagent: the page does not know how. Launch it again in the host.'
const GOAL_CUT = 'Its goal was too large to be kept. Launch it again in the host.'
const PARAMS_LOST = 'Its params were too large to be kept. Launch it again in the host.'
const NOTE = 'It is a message of the host, such as that of a schedule: no subagent has run it.'

interface Known {
  readonly record: AsyncTaskInfo
  /** The whole goal; undefined if only its beginning was kept. */
  readonly goal: string | undefined
  /** Null if it was not kept. */
  readonly further: FurtherInput | null
  /** The runner of the task; undefined once the manager has forgotten it. */
  readonly runner?: Runner | undefined
}

/** @throws StoreError if the history cannot be read */
export async function planAsyncAgain(sources: Sources, id: string, entry: AsyncEntry | undefined): Promise<PlanAgain> {
  const { manager } = sources
  if (manager === undefined) return NOT_IN_HISTORY
  if (manager.reads.isDisposed) return DISPOSED
  const known = await find(manager, id, entry)
  if (known === undefined) return NOT_IN_HISTORY
  const { record, goal, further } = known
  if (record.isNote === true) return NOTE
  if (goal === undefined) return GOAL_CUT
  if (record.continues !== undefined) return planContinuation(manager, record.continues, goal)
  const runner = known.runner ?? runnerOf(manager, record)
  if (typeof runner === 'string') return runner
  if (further === null) return PARAMS_LOST
  const { subagentName, timeoutMs, budget, concurrencyKey, kind, command } = record
  const owner = livingOwner(sources, manager, record)
  const input = {
    subagentName,
    goalPrompt: goal,
    owner,
    ...defined({ timeoutMs, budget, concurrencyKey, kind, command }),
  }
  return async () => {
    // Its context is what the schema returned when it was first launched.
    const launched = manager.launch({ ...input, ...further }, withoutContextSchema(runner))
    await manager.stored()
    return { key: asyncKey(launched.id) }
  }
}

/** Looks the task up in the manager, then in the journal, then in the store. */
async function find(manager: AsyncTaskManager, id: string, entry: AsyncEntry | undefined): Promise<Known | undefined> {
  const retained = manager.reads.history.get(id)
  // Another task may have reused the id of a forgotten one.
  if (retained !== undefined && (entry === undefined || entry.record.launchedAt === retained.record.launchedAt)) {
    return retainedTask(manager, retained)
  }
  const kept = entry === undefined ? undefined : keptTask(entry)
  if (kept?.goal !== undefined && kept.further !== null) return kept
  const past = await manager.reads.use(taskHistory).findWithParams(id)
  if (past === undefined || (entry !== undefined && past.record.launchedAt !== entry.record.launchedAt)) return kept
  const { record, params } = past
  return { record, goal: record.goalPrompt, further: params === null ? null : defined({ params }) }
}

function retainedTask(manager: AsyncTaskManager, retained: TaskEntry): Known {
  const { record } = retained
  const launched = launches.get(retained)
  if (launched !== undefined) {
    return { record, goal: record.goalPrompt, runner: launched.runner, further: furtherOf(launched) }
  }
  const params = manager.reads.persistence?.paramsOf(retained)
  return { record, goal: record.goalPrompt, further: params === null ? null : defined({ params }) }
}

function keptTask({ record, kept }: AsyncEntry): Known {
  const { goal, launch } = kept ?? {}
  const isWhole = launch === undefined || !launch.isCut
  return {
    record,
    goal: goal === undefined || goal.isCut ? undefined : goal.text,
    further: isWhole ? ((launch && (parsedKept(launch) as FurtherInput)) ?? {}) : null,
  }
}

/** Returns the subagent with the task's name, or the reason why there is none. */
function runnerOf(manager: AsyncTaskManager, { subagentName, kind }: AsyncTaskInfo): Runner | string {
  const runner = kind === 'command' ? undefined : manager.findRunner(subagentName)
  if (runner === undefined) return kind === 'command' ? RUN_BY_HOST : noSubagent(subagentName)
  const { isUnique, isBound } = flatRunner(runner)
  return isUnique === true || isBound === true ? RUN_BY_HOST : runner
}

const noSubagent = (name: string): string =>
  `Its host runs it, or has no subagent ${JSON.stringify(name)} any longer. Launch it again in the host.`

/** @throws StoreError */
async function planContinuation(manager: AsyncTaskManager, previousId: string, goal: string): Promise<PlanAgain> {
  const kept = manager.getTask(previousId)
  const previous = kept ?? (await manager.reads.use(taskHistory).find(previousId))
  if (previous === undefined) {
    return `It continues task ${previousId}, which is no longer kept, so nothing can continue that again.`
  }
  if (!isTerminal(previous)) return `It continues task ${previousId}, and another task has that id now.`
  return async () => {
    const launched = manager.continueTask(kept === undefined ? previous : previousId, goal)
    await manager.stored()
    return { key: asyncKey(launched.id) }
  }
}

/** Returns the same owner, or, if that owner is a run that has ended, the owner of that run's task. */
function livingOwner({ state }: Sources, manager: AsyncTaskManager, record: AsyncTaskInfo): string {
  let { owner } = record
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const runId = runOfOwner(owner)
    if (runId === undefined) return owner
    const run = manager.getTask(runId)
    if (run !== undefined && holdsSlot(run.status)) return owner
    const above = state.journal.get(asyncKey(runId))
    if (above?.kind !== 'async') return DEFAULT_OWNER
    ;({ owner } = above.record)
  }
  return DEFAULT_OWNER
}

const MAX_DEPTH = 100
