/** Runs a task again: a new task with the same input. */
import { owningRun } from '../../machines/families.js'
import { DEFAULT_OWNER, type AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskSubmitMessage } from '../protocol/command-tasks.js'
import { asyncKey, type AsyncEntry } from './async-entry.js'
import { commandKey, type CommandEntry } from './command-entry.js'
import { taskOf, type Sources } from './sources.js'
import type { PageEntry } from './page-entry.js'

const NOT_LAUNCHED =
  'Its host runs it, or an earlier process launched it: the page does not know what runs it. Launch it again in the host.'
const NOT_KEPT = 'Its arguments are no longer kept. Submit it again from where it came.'

const DISPOSED = 'Its host has stopped: the manager was disposed. Start the host again.'

/** Why a task cannot be run again, in words; undefined when it can. */
export function whyNotAgain(sources: Sources, entry: PageEntry): string | undefined {
  const { manager, taskManager } = sources
  const isDisposed = entry.kind === 'async' ? manager?.registry.isDisposed : taskManager?.isDisposed
  if (isDisposed === true) return DISPOSED
  if (entry.kind === 'async') return entry.launched === undefined ? (entry.whyNot ?? NOT_LAUNCHED) : undefined
  return submissionOf(sources, entry) === undefined ? NOT_KEPT : undefined
}

/** The key of the new task, or why there is none. */
export type Again = { readonly key: string } | { readonly error: string; readonly code: string }

/** @throws what the launch throws, such as TaskLimitError; nothing has changed then */
export function runAgain(sources: Sources, entry: PageEntry): Again {
  const reason = whyNotAgain(sources, entry)
  if (reason !== undefined) return { error: reason, code: 'NOT_REPEATABLE' }
  if (entry.kind === 'async') {
    const { manager } = sources
    const { launched } = entry
    if (manager === undefined || launched === undefined) return { error: NOT_LAUNCHED, code: 'NOT_REPEATABLE' }
    const owner = livingOwner(sources, manager, entry)
    const { id } = manager.launch({ ...launched.input, owner }, launched.runner)
    return { key: asyncKey(id) }
  }
  const submission = submissionOf(sources, entry)
  const submitted = submission && sources.taskManager?.submitTask(submission)
  if (submitted === undefined) return { error: NOT_KEPT, code: 'NOT_REPEATABLE' }
  return 'taskId' in submitted ? { key: commandKey(submitted.taskId) } : submitted
}

/** The same owner; where a run that has ended would own it, the owner of that run's task. */
function livingOwner({ state }: Sources, manager: AsyncTaskManager, entry: AsyncEntry): string {
  let { record } = entry
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const runId = owningRun(record)
    if (runId === undefined || manager.getTask(runId)?.status === 'running') return record.owner
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
  const common = {
    type: 'task_submit',
    instanceId: entry.instanceId,
    task_name: entry.name,
    task_intention: entry.intention,
  } as const
  if (task !== undefined) {
    // Whose task it was is not the same.
    const { asyncTaskId: _, ...metadata } = task.metadata ?? {}
    return {
      ...common,
      commands: task.commands.map(({ tool_name, intention, args, timeout }) => ({
        tool_name,
        intention,
        args,
        timeout,
      })),
      ...(Object.keys(metadata).length > 0 && { metadata }),
    }
  }
  const commands: TaskSubmitMessage['commands'] = []
  for (const { toolName, intention, args, timeout } of entry.kept ?? []) {
    if (args.type === 'cut') return undefined
    commands.push({ tool_name: toolName, intention, args: args.value as Record<string, unknown>, timeout })
  }
  return commands.length === 0 ? undefined : { ...common, commands }
}
