/** One task that a client follows, and which of its events the client has missed. */
import type { Task } from '../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** The id of the end of a task whose numbered events were removed. */
export const END_ID = 'end'

/** A task, and where its events stand. */
export interface FollowedTask {
  readonly task: Task
  /** The place of its last event; 0 when none is known. */
  readonly seq: number
  /** The events that the client has missed; undefined when they are not known: it gets the task first. */
  readonly missed: readonly TaskEvent[] | undefined
  /** The id of an event for clients. */
  idOf(seq: number): string
}

/**
 * The events that a client has missed.
 * @param lastEventId the `Last-Event-ID` header
 * @returns undefined when they are not known: the stream begins with a snapshot then
 */
export function eventsToResume(
  log: EventLog,
  task: Task,
  lastEventId: string | undefined,
): readonly TaskEvent[] | undefined {
  if (lastEventId === END_ID && task.completedAt !== undefined) return []
  const seq = lastEventId === undefined ? undefined : log.seqOf(task.id, lastEventId)
  if (seq === undefined) return undefined
  // An ended task had events: if none are known, they were removed.
  if (task.completedAt !== undefined && log.lastSeq(task.id) === 0) return undefined
  return log.after(task.id, seq)
}
