/** Runs a command task again: the same commands on the same instance. */
import { NOT_STORED } from '../command-tasks/submission.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { Task, TaskSubmitMessage } from '../protocol/command-tasks.js'
import { commandKey, type CommandEntry } from './command-entry.js'
import { parsedKept, type KeptValue } from './kept-values.js'
import { DISPOSED, NOT_IN_HISTORY } from './refusals.js'
import type { Again, PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

const ARGUMENTS_LOST = 'Its arguments were too large to be kept. Submit it again from where it came.'

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

/** Submits a task. Resolves when it is accepted, or refused. */
export async function submitForPage(taskManager: TaskManager, submission: TaskSubmitMessage): Promise<Again> {
  const submitted = taskManager.submitTask(submission)
  if ('error' in submitted) return submitted
  const { taskId } = submitted
  return (await taskManager.accepted(taskId)) === false ? NOT_STORED : { key: commandKey(taskId) }
}

/** Looks the commands up in the task manager, then in the journal. */
function submissionOf(
  taskManager: TaskManager,
  id: string,
  entry: CommandEntry | undefined,
): TaskSubmitMessage | undefined {
  const task = taskManager.getTask(id)
  if (task !== undefined) return submissionAgain(task)
  return entry && keptSubmission(entry)
}

/** Reads the commands from the history, or returns the reason why it cannot. @throws StoreError */
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
  // The new task does not belong to the async task of the first one.
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
