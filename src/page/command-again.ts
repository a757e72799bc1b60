/** Runs a command task again: submits the same commands to the same instance. */
import { NOT_STORED } from '../command-tasks/submission.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { Task, TaskSubmitMessage } from '../protocol/command-tasks.js'
import { commandKey, type CommandEntry } from './command-entry.js'
import { parsedKept, type KeptValue } from './kept-values.js'
import { DISPOSED, NOT_IN_HISTORY } from './refusals.js'
import type { Again, PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

const ARGUMENTS_LOST =
  'The arguments of this task were too large to be kept. Submit the task again with the program that submitted it.'

/** @throws StoreError if the history cannot be read */
export async function planCommandAgain(
  sources: Sources,
  id: string,
  entry: CommandEntry | undefined,
): Promise<PlanAgain> {
  const { taskManager } = sources
  if (taskManager === undefined) return NOT_IN_HISTORY
  if (taskManager.isDisposed) return DISPOSED
  const submission = submissionOf(taskManager, id, entry) ?? (await pastSubmission(taskManager, id))
  if (typeof submission === 'string') return entry === undefined ? submission : ARGUMENTS_LOST
  return () => submitForPage(taskManager, submission)
}

/** Submits a task. Resolves when the TaskManager has accepted or refused the task. */
export async function submitForPage(taskManager: TaskManager, submission: TaskSubmitMessage): Promise<Again> {
  const submitted = taskManager.submitTask(submission)
  if ('error' in submitted) return submitted
  const { taskId } = submitted
  return (await taskManager.accepted(taskId)) === false ? NOT_STORED : { key: commandKey(taskId) }
}

/** Reads the commands from the task manager, or else from the journal. */
function submissionOf(
  taskManager: TaskManager,
  id: string,
  entry: CommandEntry | undefined,
): TaskSubmitMessage | undefined {
  const task = taskManager.getTask(id)
  if (task !== undefined) return submissionAgain(task)
  return entry && keptSubmission(entry)
}

/**
 * Reads the commands from the history. Returns a text with the reason if that is not possible.
 * @throws StoreError if the history cannot be read
 */
async function pastSubmission(taskManager: TaskManager, id: string): Promise<TaskSubmitMessage | string> {
  const past = await taskManager.findPast(id)
  if (past === undefined) return NOT_IN_HISTORY
  return past.isCut ? ARGUMENTS_LOST : submissionAgain(past.task)
}

function keptSubmission({ instanceId, kept }: CommandEntry): TaskSubmitMessage | undefined {
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

function submissionAgain({ instanceId, name, intention, commands, metadata: given }: Task): TaskSubmitMessage {
  // An async task may have submitted the first task. The new task is submitted by a person, so it does not belong to that async task.
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
