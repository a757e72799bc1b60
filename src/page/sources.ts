/** Where the data of tasks comes from: the managers, and the journal for tasks that the managers have forgotten. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { SendEvent } from '../server/http/post-event.js'
import type { Task } from '../protocol/command-tasks.js'
import type { AsyncEntry } from './async-entry.js'
import type { CommandEntry } from './command-entry.js'
import type { PageState } from './page-state.js'

export interface Sources {
  readonly state: PageState
  readonly manager: AsyncTaskManager | undefined
  readonly taskManager: TaskManager | undefined
  /** Sends an event to all waiting tasks of the host's owner, or to one task. Absent if the page has no async tasks. */
  readonly emit?: SendEvent | undefined
  readonly restUrl: string | undefined
  readonly hasRestTokens: boolean
  /** The template for the addresses of traces. */
  readonly traceUrl: string | undefined
}

/** Returns the manager's record of a task; undefined once the manager has forgotten the task. */
export function recordOf({ manager }: Sources, { record, isEnded }: AsyncEntry): AsyncTaskInfo | undefined {
  const found = manager?.getTask(record.id)
  // The manager may have forgotten the task and given its id to another task, which has a different launch time.
  if (found === undefined || found.launchedAt !== record.launchedAt) return isEnded ? undefined : record
  return found
}

/** Returns the TaskManager's task; undefined once the TaskManager has forgotten the task. */
export const taskOf = ({ taskManager }: Sources, { id }: CommandEntry): Task | undefined => taskManager?.getTask(id)
