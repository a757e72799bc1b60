/** A task that a client follows, and the events that the client has missed. */
import type { Task } from '../../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** The event id for the end of a task whose other events were removed. */
export const END_ID = 'end'

export interface FollowedTask {
  readonly task: Task
  /** The position of the task's last event; 0 if there are no events. */
  readonly seq: number
  /** The events that the client has missed. Undefined if they are unknown; then the client first receives the whole task. */
  readonly missed: readonly TaskEvent[] | undefined
  idOf(seq: number): string
}

/**
 * Returns the events that a client has missed.
 * @param lastEventId the `Last-Event-ID` header
 * @returns undefined if the missed events are unknown; the stream then begins with a snapshot of the task
 */
export function eventsToResume(
  log: EventLog,
  task: Task,
  lastEventId: string | undefined,
): readonly TaskEvent[] | undefined {
  if (lastEventId === END_ID && task.completedAt !== undefined) return []
  const seq = lastEventId === undefined ? undefined : log.seqOf(task.id, lastEventId)
  if (seq === undefined) return undefined
  // Every ended task had events. If the log has none, they were removed.
  if (task.completedAt !== undefined && log.lastSeq(task.id) === 0) return undefined
  return log.after(task.id, seq)
}
