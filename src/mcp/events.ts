/** Events for the tasks of an MCP client, over HTTP: `POST /events`. */
import { rootOwner } from '../async-tasks/families/families.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { postEvent, unknownTask, type EventAnswer } from '../http/post-event.js'
import { InvalidInputError } from '../errors.js'
import type { Caller } from './callers.js'
import { isSessionOf } from './left-sessions.js'

/** Where events are posted, on the server of the MCP endpoint. */
export const EVENTS_PATH = '/events'

/**
 * Sends an event to the tasks of a client: to one of them, or to those of its session, or of its token if it names no session.
 * @param session the owner of the session that the request names, if the client has opened that
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
    // A token has the tasks of all its sessions.
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
