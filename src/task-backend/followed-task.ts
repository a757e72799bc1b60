/** A task that a client follows, and the events that the client has missed. */
import type { Task } from '../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** The event id for the end of a task whose numbered events were removed. */
export const END_ID = 'end'

/** A task and its missed events. */
export interface FollowedTask {
  readonly task: Task
  /** The place of its last event; 0 without events. */
  readonly seq: number
  /** The missed events; undefined when they are unknown, in which case the client first receives the task. */
  readonly missed: readonly TaskEvent[] | undefined
  /** The id of an event for clients. */
  idOf(seq: number): string
}

/**
 * Reads which events a client has missed.
 * @param lastEventId the `Last-Event-ID` header
 * @returns undefined when they are unknown; the stream then begins with a snapshot
 */
export function eventsToResume(
  log: EventLog,
  task: Task,
  lastEventId: string | undefined,
): readonly TaskEvent[] | undefined {
  if (lastEventId === END_ID && task.completedAt !== undefined) return []
  const seq = lastEventId === undefined ? undefined : log.seqOf(task.id, lastEventId)
  if (seq === undefined) return undefined
  // An ended task had events. If the log has none, they were removed.
  if (task.completedAt !== undefined && log.lastSeq(task.id) === 0) return undefined
  return log.after(task.id, seq)
}
