/**
 * A command task as the run of an async task: submitted, followed to its end, and ended with its async task (S10).
 *
 * Either end brings about the other: when the async task is cancelled or its deadline passes, the command task is
 * cancelled; when the command task ends, the run ends. An end that nobody here asked for is a failure that says so.
 */
import type { RunContext, Runner } from '../engine/runner.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type {
  SubmitErrorCode,
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../protocol/command-tasks.js'
import { endText, outputOf, progressText, stepName } from './command-texts.js'

/** A command task that was submitted for an async task. */
export interface CommandRun {
  readonly task: Task
  readonly queuePosition: number
  /** What the async task runs: it ends as the command task does. */
  readonly runner: Runner
  /** The async task's: its abort cancels the command task, even if the runner was never called. */
  readonly abortController: AbortController
  /** No async task came of it: cancels the command task. */
  abandon(): void
}

/** Why nothing was submitted. */
export interface SubmitRefusal {
  readonly error: string
  readonly code: SubmitErrorCode
}

/** Submits a command task and begins to follow it, before its first event. */
export function submitCommandTask(taskManager: TaskManager, message: TaskSubmitMessage): CommandRun | SubmitRefusal {
  const submitted = taskManager.submitTask(message)
  if ('error' in submitted) return submitted
  const { taskId, queuePosition } = submitted
  const task = taskManager.getTask(taskId)
  if (task === undefined) throw new Error(`command task ${taskId} was accepted and is unknown`)
  const end = followTask(taskManager, task)
  const abortController = new AbortController()
  const cancel = (): void => {
    taskManager.cancelTask(taskId)
  }
  abortController.signal.addEventListener('abort', cancel, { once: true })
  return {
    task,
    queuePosition,
    abortController,
    runner: async (_input, context) => {
      end.attach(context)
      const complete = await end.complete
      // What was asked for here is no news: it ends the run without a result.
      if (abortController.signal.aborted) throw new DOMException('The async task was ended first.', 'AbortError')
      if (complete.status === 'completed') return outputOf(task, complete)
      throw new Error(endText(task, complete))
    },
    abandon: cancel,
  }
}

interface FollowedTask {
  /** Resolves with the end, which every task has (S1). */
  readonly complete: Promise<TaskCompleteMessage>
  /** Tells the run what has been told so far, and from now on. */
  attach(context: RunContext): void
}

function followTask(taskManager: TaskManager, task: Task): FollowedTask {
  let context: RunContext | undefined
  let done = 0
  const early: TaskProgressMessage[] = []
  const tell = (message: TaskProgressMessage): void => {
    if (message.taskId !== task.id) return
    if (context === undefined) {
      early.push(message)
      return
    }
    const text = progressText(message)
    if (text !== '') context.append(`${text}\n`)
    // A tool that stops saying how much there is in all does not take back what was done.
    done = Math.max(done, commandsDone(message))
    context.report({ progress: done, total: message.totalCommands, message: message.message ?? stepName(message) })
  }
  const following = taskManager.progress$.subscribe(tell)
  const complete = new Promise<TaskCompleteMessage>((resolve) => {
    const waiting = taskManager.complete$.subscribe((message) => {
      if (message.taskId !== task.id) return
      following.unsubscribe()
      waiting.unsubscribe()
      resolve(message)
    })
  })
  return {
    complete,
    attach: (run) => {
      context = run
      for (const message of early.splice(0)) tell(message)
    },
  }
}

/** How many commands are done, with the part of the present one that its tool has reported. */
function commandsDone({ commandIndex, status, progress, total }: TaskProgressMessage): number {
  if (status === 'success') return commandIndex + 1
  const hasPart = progress !== undefined && total !== undefined && total > 0
  return commandIndex + (hasPart ? Math.min(1, Math.max(0, progress / total)) : 0)
}
