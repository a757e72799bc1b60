/**
 * Runs an async task again by launching a new task with the same input. If the first task continued an earlier task, the new task continues that earlier
 * task, too.
 */
import { runOfOwner } from '../../machines/run-owner.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import { termsOf } from '../../machines/task-record.js'
import { holdsSlot } from '../../machines/task-status.js'
import { taskHistory } from '../features/history/past-tasks.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { launches } from '../async-tasks/run-plan.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { withoutContextSchema } from '../engine/context-schema.js'
import { resolveRunner } from '../engine/definition.js'
import type { Runner } from '../engine/runner.js'
import { asyncKey, type AsyncEntry } from './async-entry.js'
import { parsedKept } from './kept-values.js'
import { fromParams } from '../protocol/run-fields.js'
import { furtherOf, type FurtherInput } from './launched-input.js'
import { DISPOSED, NOT_IN_HISTORY } from './refusals.js'
import type { PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

const RUN_BY_HOST =
  'The host ran this task with its own code, which the page cannot start. Launch the task again in the host.'
const GOAL_CUT = 'The goal of this task was too large to be kept. Launch the task again in the host.'
const PARAMS_LOST = 'The params of this task were too large to be kept. Launch the task again in the host.'
const NOTE = 'It is a message of the host, such as one of a schedule, and no subagent ran it.'

interface Known {
  readonly record: AsyncTaskInfo
  /** Undefined if only the beginning of the goal was kept. */
  readonly goal: string | undefined
  /** The rest of the launch input; null if it was not kept. */
  readonly further: FurtherInput | null
  /** The runner that the first task used; undefined once the manager has forgotten the task. */
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
  const { subagentName, kind, command } = record
  const owner = livingOwner(sources, manager, record)
  const input = {
    subagentName,
    goalPrompt: goal,
    owner,
    ...termsOf(record),
    ...omitUndefined({ kind, command }),
  }
  const { params, ...rest } = further
  return async () => {
    // The stored context is already an output of the subagent's context schema, so the schema must not convert it a second time.
    const launched = manager.launch({ ...input, ...rest, ...fromParams(params) }, withoutContextSchema(runner))
    await manager.stored()
    return { key: asyncKey(launched.id) }
  }
}

/** Looks the task up in the manager, then in the journal, then in the history of the store. */
async function find(manager: AsyncTaskManager, id: string, entry: AsyncEntry | undefined): Promise<Known | undefined> {
  const retained = manager.reads.history.get(id)
  // The manager may have forgotten the task and given its id to another task, which has a different launch time.
  if (retained !== undefined && (entry === undefined || entry.record.launchedAt === retained.record.launchedAt)) {
    return retainedTask(manager, retained)
  }
  const kept = entry === undefined ? undefined : keptTask(entry)
  if (kept?.goal !== undefined && kept.further !== null) return kept
  const past = await manager.reads.use(taskHistory).findWithParams(id)
  if (past === undefined || (entry !== undefined && past.record.launchedAt !== entry.record.launchedAt)) return kept
  const { record, params } = past
  return { record, goal: record.goalPrompt, further: params === null ? null : omitUndefined({ params }) }
}

function retainedTask(manager: AsyncTaskManager, retained: TaskEntry): Known {
  const { record } = retained
  const launched = launches.get(retained)
  if (launched !== undefined) {
    return { record, goal: record.goalPrompt, runner: launched.runner, further: furtherOf(launched) }
  }
  const params = manager.reads.persistence?.runOf(retained).params
  return { record, goal: record.goalPrompt, further: params === null ? null : omitUndefined({ params }) }
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
  const { isUnique, isBound } = resolveRunner(runner)
  return isUnique === true || isBound === true ? RUN_BY_HOST : runner
}

const noSubagent = (name: string): string =>
  `The host has no subagent ${JSON.stringify(name)}: it ran this task with its own code, or the subagent was removed. Launch the task again in the host.`

/** @throws StoreError if the history cannot be read */
async function planContinuation(manager: AsyncTaskManager, previousId: string, goal: string): Promise<PlanAgain> {
  const kept = manager.getTask(previousId)
  const previous = kept ?? (await manager.reads.use(taskHistory).find(previousId))
  if (previous === undefined) {
    return `This task continues task ${previousId}, which is no longer kept. Launch a new task in the host.`
  }
  if (!isTerminal(previous)) {
    return `This task continues task ${previousId}, but another task now has that id. Launch a new task in the host.`
  }
  return async () => {
    const launched = manager.continueTask(kept === undefined ? previous : previousId, goal)
    await manager.stored()
    return { key: asyncKey(launched.id) }
  }
}

/** Returns the owner for the new task: the owner of the first task. If that owner is a run that has ended, returns the owner of that run's task. */
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
