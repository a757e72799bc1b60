/** Takes over the tasks of an earlier process (promise K12). Tasks that were running fail; queued tasks wait for their instance to connect. */
import { clearLongTimeout, setLongTimeout, unrefTimer, type Clock } from '../system/clock.js'
import type { CommandTask, CommandTaskOrigin, SubmittedTask } from './command-task.js'
import type { Lanes } from './lanes.js'
import type { CommandRecovery } from './options.js'
import { heldBytes, type RestoredTask } from './stored-tasks.js'
import type { TaskTable } from './task-table.js'

export interface RecoveryHost {
  readonly tasks: TaskTable
  readonly lanes: Lanes
  readonly clock: Clock
  /** Receives the ids of the tasks that had started or ended in the earlier process. */
  readonly continued: Set<string>
  readonly createTask: (submitted: SubmittedTask, origin: CommandTaskOrigin) => CommandTask
}

/** Takes over the stored tasks of an earlier process. Call this function inside `outbox.batch`. */
export function recoverTasks(
  rows: readonly RestoredTask[],
  { tasks, lanes, clock, continued, createTask }: RecoveryHost,
): CommandRecovery {
  const queued: string[] = []
  const interrupted: string[] = []
  const ended: CommandTask[] = []
  for (const { task: restored, submitted, place, request } of rows) {
    const bytes = heldBytes(submitted, restored)
    const task = createTask(submitted, { instanceId: restored.instanceId, place, bytes, request, restored })
    tasks.add(task)
    tasks.hold(bytes)
    if (task.hasEnded || task.hasStarted) continued.add(task.id)
    if (task.hasEnded) ended.push(task)
    else if (task.hasStarted) {
      interrupted.push(task.id)
      task.interrupt()
    } else {
      queued.push(task.id)
      lanes.add(task)
    }
  }
  const endOf = ({ record }: CommandTask): number => record.completedAt ?? 0
  for (const task of ended.sort((a, b) => endOf(a) - endOf(b))) {
    tasks.end(task, Math.max(0, clock.now() - endOf(task)))
  }
  tasks.sweep()
  return { queued, interrupted }
}

/**
 * Fails the queued tasks of an earlier process whose instances do not connect within `graceMs`.
 * @returns a function that stops the timer
 */
export function awaitInstances(lanes: Lanes, clock: Clock, graceMs: number): () => void {
  const giveUp = (): void =>
    lanes.abandonWaiting((id) => `Instance ${id} did not connect within ${graceMs} ms after the server was restarted`)
  const label = { name: 'limit of the wait for instances', kind: 'deadline' } as const
  const timer = setLongTimeout(clock, giveUp, graceMs, label)
  unrefTimer(timer.current)
  return () => clearLongTimeout(clock, timer)
}
