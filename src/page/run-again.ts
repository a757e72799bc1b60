/** Runs a task again: a new task with the same input. */
import { holdsSlot } from '../../machines/task-status.js'
import { runOfOwner } from '../../machines/families.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { NOT_STORED } from '../command-tasks/submission.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { defined } from '../defined.js'
import { launches, type LaunchedTask } from '../async-tasks/run-plan.js'
import type { Task, TaskSubmitMessage } from '../protocol/command-tasks.js'
import { asyncKey, type AsyncEntry } from './async-entry.js'
import { commandKey, type CommandEntry } from './command-entry.js'
import { parsedKept, type KeptValue } from './kept-values.js'
import { taskOf, type Sources } from './sources.js'
import type { PageEntry } from './page-entry.js'

const NOT_LAUNCHED =
  'Its host runs it, or an earlier process launched it: the page does not know what runs it. Launch it again in the host.'
const FORGOTTEN =
  'Its manager remembers the last tasks only, and has forgotten this one and what runs it. Launch it again in the host.'
const NOT_KEPT = 'Its arguments are no longer kept. Submit it again from where it came.'
const DISPOSED = 'Its host has stopped: the manager was disposed. Start the host again.'

/** Why a task cannot be run again, in words; undefined when it can. */
export function whyNotAgain(sources: Sources, entry: PageEntry): string | undefined {
  if (isDisposed(sources, entry)) return DISPOSED
  const again = entry.kind === 'async' ? launchedOf(sources, entry) : (submissionOf(sources, entry) ?? NOT_KEPT)
  return typeof again === 'string' ? again : undefined
}

/** The key of the new task, or why there is none. */
export type Again = { readonly key: string } | { readonly error: string; readonly code: string }

/** @throws what the launch throws, such as TaskLimitError, and StoreError when it cannot be stored; nothing has changed then */
export async function runAgain(sources: Sources, entry: PageEntry): Promise<Again> {
  if (isDisposed(sources, entry)) return { error: DISPOSED, code: 'NOT_REPEATABLE' }
  if (entry.kind === 'async') {
    const found = launchedOf(sources, entry)
    if (typeof found === 'string') return { error: found, code: 'NOT_REPEATABLE' }
    const { manager, launched } = found
    const owner = livingOwner(sources, manager, entry)
    const { input, params, runner } = launched
    const { id: _, abortController: _controller, parentId: _parent, isForeground: _place, ...wanted } = input
    // What it waited for has ended, and may be forgotten.
    const { after: _after, onFailedDependency: _failed, ...same } = wanted
    const { id } = manager.launch({ ...same, ...defined({ params }), owner }, runner)
    await manager.stored()
    return { key: asyncKey(id) }
  }
  const submission = submissionOf(sources, entry)
  if (submission === undefined || sources.taskManager === undefined) return { error: NOT_KEPT, code: 'NOT_REPEATABLE' }
  return submitForPage(sources.taskManager, submission)
}

/** Submits a task. Resolves when it is accepted, or refused. */
export async function submitForPage(taskManager: TaskManager, submission: TaskSubmitMessage): Promise<Again> {
  const submitted = taskManager.submitTask(submission)
  if ('error' in submitted) return submitted
  const { taskId } = submitted
  return (await taskManager.accepted(taskId)) === false ? NOT_STORED : { key: commandKey(taskId) }
}

const isDisposed = ({ manager, taskManager }: Sources, { kind }: PageEntry): boolean =>
  (kind === 'async' ? manager?.reads.isDisposed : taskManager?.isDisposed) === true

/** What its manager has launched, or why that is not known. It is not kept here: nobody can count what a function holds. */
function launchedOf(
  { manager }: Sources,
  { record }: AsyncEntry,
): { readonly manager: AsyncTaskManager; readonly launched: LaunchedTask } | string {
  const retained = manager?.reads.history.get(record.id)
  // Another task may have the id of a forgotten one.
  if (manager === undefined || retained?.record.launchedAt !== record.launchedAt) return FORGOTTEN
  const launched = launches.get(retained)
  return launched === undefined ? NOT_LAUNCHED : { manager, launched }
}

/** The same owner; where a run that has ended would own it, the owner of that run's task. */
function livingOwner({ state }: Sources, manager: AsyncTaskManager, entry: AsyncEntry): string {
  let { record } = entry
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const runId = runOfOwner(record.owner)
    const run = runId === undefined ? undefined : manager.getTask(runId)
    if (runId === undefined || (run !== undefined && holdsSlot(run.status))) return record.owner
    const above = state.journal.get(asyncKey(runId))
    if (above?.kind !== 'async') return DEFAULT_OWNER
    ;({ record } = above)
  }
  return DEFAULT_OWNER
}

const MAX_DEPTH = 100

/** The same commands for the same instance. */
function submissionOf(sources: Sources, entry: CommandEntry): TaskSubmitMessage | undefined {
  const task = taskOf(sources, entry)
  const { instanceId, kept } = entry
  if (task !== undefined) return submissionAgain(task)
  if (kept === undefined || [kept.about, ...kept.commands.flatMap(({ call, args }) => [call, args])].some(isCut)) {
    return undefined
  }
  const commands = kept.commands.map(({ call, args }) => ({
    ...(parsedKept(call) as object),
    args: parsedKept(args),
  }))
  return {
    type: 'task_submit',
    instanceId,
    ...(parsedKept(kept.about) as Pick<TaskSubmitMessage, 'task_name' | 'task_intention'>),
    commands: commands as TaskSubmitMessage['commands'],
  }
}

/** What submits the commands of a task again. */
export function submissionAgain({ instanceId, name, intention, commands, metadata: given }: Task): TaskSubmitMessage {
  // Whose task it was is not the same.
  const { asyncTaskId: _, ...metadata } = given ?? {}
  return {
    type: 'task_submit',
    instanceId,
    task_name: name,
    task_intention: intention,
    commands: commands.map(({ tool_name, intention: why, args, timeout }) => ({
      tool_name,
      intention: why,
      args,
      timeout,
    })),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
}

const isCut = ({ isCut }: KeptValue): boolean => isCut
