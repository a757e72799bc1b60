/** `POST /events`: sends events to the tasks of an MCP client, over HTTP. */
import { rootOwner } from '../async-tasks/families/families.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { postEvent, unknownTask, type EventAnswer } from '../http/post-event.js'
import { InvalidInputError } from '../errors.js'
import type { Caller } from './callers.js'
import { isSessionOf } from './left-sessions.js'

/** Where events are posted, on the server of the MCP endpoint. */
export const EVENTS_PATH = '/events'

/**
 * Sends an event to one task of a client, to those of its session, or to those of its token if it names no session.
 * @param session the owner of the named session, if this client has opened it
 */
export function postClientEvent(
  manager: AsyncTaskManager,
  { owner, isAnonymous }: Caller,
  session: string | undefined,
  body: unknown,
): Promise<EventAnswer> {
  const isOwn = (taskId: string): boolean => {
    const task = manager.getTask(taskId)
    const root = task && rootOwner(manager, task)
    // A token owns the tasks of all its sessions.
    return root !== undefined && (root === owner || root === session || (!isAnonymous && isSessionOf(root, owner)))
  }
  return postEvent(body, (event, value, taskId) => {
    if (taskId !== undefined) {
      if (!isOwn(taskId)) throw unknownTask(taskId)
      return manager.emit(event, value, { taskId })
    }
    if (session === undefined && isAnonymous) {
      throw new InvalidInputError('body.taskId', taskId, 'the full id of a task, because the request has no token')
    }
    return manager.emit(event, value, { owner: session ?? owner })
  })
}
