/**
 * Runs a command task as the run of an async task (promise S10).
 *
 * When the async task is cancelled or its deadline passes, the command task is cancelled. When the command task ends, the run ends. If somebody else
 * cancels the command task, the run fails with an error that says so.
 */
import { isSuspension } from '../async-tasks/cancel-reason.js'
import type { ResolvedRunner, RunContext, RunFunction } from '../engine/runner.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type {
  SubmitErrorCode,
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../protocol/command-tasks.js'
import { endText, outputOf, progressText, stepName } from './command-texts.js'
import { hasSucceeded } from '../../machines/task-status.js'

export interface CommandRun {
  readonly commandTaskId: string
  readonly instanceId: string
  readonly queuePosition: number
  /** The run of the async task, which ends when the command task does. */
  readonly runner: ResolvedRunner
  /** Register it with the async task: its abort cancels the command task, even if the runner was never called. */
  readonly abortController: AbortController
  /** The additional input of the run, with which a later process resumes the run. */
  readonly context?: LaunchTaskInput['context']
  /** Whether the command task was stored. Undefined if it is not stored at all. If it is false, there is no command task to follow. */
  readonly accepted?: Promise<boolean> | undefined
  /** Cancels the command task. Call it when the async task could not be launched. */
  abandon(): void
}

export interface SubmitRefusal {
  readonly error: string
  readonly code: SubmitErrorCode
}

export function submitCommandTask(taskManager: TaskManager, message: TaskSubmitMessage): CommandRun | SubmitRefusal {
  const submitted = taskManager.submitTask(message)
  if ('error' in submitted) return submitted
  const { taskId, queuePosition } = submitted
  const task = taskManager.getTask(taskId)
  if (task === undefined) throw new Error(`Command task ${taskId} was accepted, but the task manager does not know it.`)
  const end = followTask(taskManager, task)
  const abortController = new AbortController()
  const { signal } = abortController
  const cancel = (): void => {
    taskManager.cancelTask(taskId)
  }
  const onAbort = (): void => {
    // With a store, the command task is kept, as the async task is.
    if (!isSuspension(signal) || taskManager.persistence === undefined) cancel()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  // The record of the async task keeps the controller after the end, so the listener must be removed.
  const release = (): void => signal.removeEventListener('abort', onAbort)
  void end.complete.then(release)
  const run: RunFunction = async (_input, context) => {
    end.attach(context)
    const complete = await end.complete
    // The async task has ended already, so its result would be ignored. Or the command task was kept for the next process.
    if (complete === undefined || (signal.aborted && !isSuspension(signal))) {
      throw new DOMException('The async task was ended first.', 'AbortError')
    }
    if (hasSucceeded(complete.status)) return outputOf(task, complete)
    throw new Error(endText(task, complete))
  }
  // The runner is bound to this task (`isBound`). It cannot be found by name, because a subagent may have the name that the model chose.
  return {
    commandTaskId: taskId,
    instanceId: task.instanceId,
    queuePosition,
    abortController,
    runner: { run, isBound: true, isUnique: true },
    accepted: taskManager.accepted(taskId)?.then((isAccepted) => {
      if (isAccepted) return true
      end.stop()
      release()
      return false
    }),
    abandon: cancel,
  }
}

interface FollowedTask {
  /** Resolves when the task ends (promise S1). Resolves with undefined if the task manager is disposed first and keeps the task. */
  readonly complete: Promise<TaskCompleteMessage | undefined>
  /** Reports the earlier progress messages, and from then on each new one, to the run. */
  attach(context: RunContext): void
  /** Stops following. Call it when the command task was not stored, because then it never ends. */
  stop(): void
}

function followTask(taskManager: TaskManager, task: Task): FollowedTask {
  let report: ((message: TaskProgressMessage) => void) | undefined
  const early: TaskProgressMessage[] = []
  const following = taskManager.progress$.subscribe((message) => {
    if (message.taskId !== task.id) return
    if (report === undefined) early.push(message)
    else report(message)
  })
  const stop = (): void => following.unsubscribe()
  const complete = new Promise<TaskCompleteMessage | undefined>((resolve) => {
    const waiting = taskManager.complete$.subscribe({
      next: (message) => {
        if (message.taskId !== task.id) return
        stop()
        resolve(message)
      },
      complete: () => resolve(undefined),
    })
    following.add(waiting)
  })
  return {
    complete,
    attach: (context) => {
      report = reporterOf(context)
      for (const message of early.splice(0)) report(message)
    },
    stop,
  }
}

export function reporterOf(context: RunContext): (message: TaskProgressMessage) => void {
  let done = 0
  return (message) => {
    const text = progressText(message)
    if (text !== '') context.append(`${text}\n`)
    // A later message may report less, but the progress of a run must not decrease.
    done = Math.max(done, commandsDone(message))
    context.report({ progress: done, total: message.totalCommands, message: message.message ?? stepName(message) })
  }
}

/** The number of completed commands, including the reported fraction of the current one. */
function commandsDone({ commandIndex, status, progress, total }: TaskProgressMessage): number {
  if (status === 'success') return commandIndex + 1
  const hasPart = progress !== undefined && total !== undefined && total > 0
  return commandIndex + (hasPart ? Math.min(1, Math.max(0, progress / total)) : 0)
}
