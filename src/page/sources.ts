/** Where the tasks of the page come from: their managers, and the journal once those have forgotten them. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { SendEvent } from '../http/post-event.js'
import type { Task } from '../protocol/command-tasks.js'
import type { AsyncEntry } from './async-entry.js'
import type { CommandEntry } from './command-entry.js'
import type { PageState } from './page-state.js'

export interface Sources {
  readonly state: PageState
  readonly manager: AsyncTaskManager | undefined
  readonly taskManager: TaskManager | undefined
  /** Sends an event to the tasks of the host's owner, or to one task; absent where no task can wait for it. */
  readonly emit?: SendEvent | undefined
  /** The address of the REST interface. */
  readonly restUrl: string | undefined
  /** The template of the address of a trace. */
  readonly traceUrl: string | undefined
}

/** The record in the manager, as long as that has it. */
export function recordOf({ manager }: Sources, { record, isEnded }: AsyncEntry): AsyncTaskInfo | undefined {
  const found = manager?.getTask(record.id)
  // Another task may have the id of a forgotten one.
  if (found === undefined || found.launchedAt !== record.launchedAt) return isEnded ? undefined : record
  return found
}

/** The task in the task manager, as long as that has it. */
export const taskOf = ({ taskManager }: Sources, { id }: CommandEntry): Task | undefined => taskManager?.getTask(id)
