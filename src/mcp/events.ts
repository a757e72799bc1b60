/** `POST /events`: sends events to the tasks of an MCP client, over HTTP. */
import { rootOwner } from '../features/families/families.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { postEvent, unknownTask, type EventAnswer } from '../server/http/post-event.js'
import { InvalidInputError } from '../errors.js'
import { clientOf, type Caller } from './callers.js'

/** The path to which events are posted, on the server of the MCP endpoint. */
export const EVENTS_PATH = '/events'

/**
 * Sends an event to one task of a client, to the tasks of the named session, or, if the request names no session, to those of the token.
 * @param session the owner of the named session, if this client has opened the session
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
    // A client with a token may also name the tasks of all its sessions.
    return root !== undefined && (root === session || clientOf(root) === owner)
  }
  return postEvent(body, (event, value, taskId) => {
    if (taskId !== undefined) {
      if (!isOwn(taskId)) throw unknownTask(taskId)
      return manager.emit(event, value, { taskId })
    }
    if (session === undefined && isAnonymous) {
      throw new InvalidInputError(
        'body.taskId',
        taskId,
        'the full id of a task, because the request has no token and no session',
      )
    }
    return manager.emit(event, value, { owner: session ?? owner })
  })
}
