/**
 * Tasks as resources: `task://<id>` is what a task is and has written, as JSON. A client that subscribes is told when one
 * changes, and when there are others.
 */
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import { merge, map, filter } from 'rxjs'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { previewText } from '../async-tasks/bounded-text.js'
import { formatCompletionNotification } from '../async-tasks/notifications.js'
import { visibleTasks } from '../async-tasks/task-lookup.js'
import type { Backend } from './backend.js'
import type { LowLevelServer } from './low-level-server.js'

const SCHEME = 'task://'
const MIME_TYPE = 'application/json'
const PAGE_SIZE = 100

export const taskUri = (taskId: string): string => `${SCHEME}${encodeURIComponent(taskId)}`

/** What a client can be told of its tasks. */
export interface ResourceChange {
  readonly owner: string
  readonly uri: string
  /** There is one more, or one less. */
  readonly isListChange: boolean
}

/** Every change of a task that a reader of its resource would see. */
export function resourceChanges({ manager }: Backend) {
  const toChange = ({ taskId, owner }: { taskId: string; owner: string }): ResourceChange => ({
    owner,
    uri: taskUri(taskId),
    isListChange: false,
  })
  return merge(
    manager.transitions$.pipe(
      filter(({ kind }) => kind === 'status' || kind === 'history'),
      map((transition) => ({
        ...toChange(transition),
        isListChange: transition.kind === 'history' || transition.from === null,
      })),
    ),
    manager.progress$.pipe(map(toChange)),
    manager.questions$.pipe(map(toChange)),
  )
}

/** Registers resources/list, resources/templates/list and resources/read. `sees`: whose tasks are listed; none when undefined. */
export function registerResources(server: LowLevelServer, backend: Backend, owner: string, isListed: boolean): void {
  const { manager } = backend
  server.setRequestHandler('resources/list', ({ params }) => {
    const tasks = isListed ? visibleTasks(manager, owner) : []
    const start = params?.cursor === undefined ? 0 : Number(params.cursor)
    if (!Number.isSafeInteger(start) || start < 0) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'cursor: expected one that a list has given.')
    }
    const end = start + PAGE_SIZE
    return {
      resources: tasks.slice(start, end).map((task) => ({
        uri: taskUri(task.id),
        name: task.id,
        title: `${task.subagentName}: ${previewText(task.goalPrompt, 80)}`,
        description: `Background task, ${task.status}`,
        mimeType: MIME_TYPE,
      })),
      ...(end < tasks.length && { nextCursor: String(end) }),
    }
  })
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: `${SCHEME}{task_id}`,
        name: 'task',
        title: 'A background task',
        description: 'Its status, what it asks, its result, and the end of what it has written.',
        mimeType: MIME_TYPE,
      },
    ],
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const task = manager.getTask(taskIdOf(uri))
    if (task?.owner !== owner) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType: MIME_TYPE, text: JSON.stringify(contentOf(backend, task), null, 2) }] }
  })
}

/** Reading a resource is no message to the model: it acknowledges nothing. */
function contentOf({ manager, config: { maxMessageChars } }: Backend, task: AsyncTaskInfo): Record<string, unknown> {
  const { id, subagentName, goalPrompt, status, launchedAt, completedAt, progress, questions } = task
  const written = manager.readOutput(id, { maxBytes: maxMessageChars })
  const result = formatCompletionNotification(task)
  return {
    id,
    subagent: subagentName,
    goal: previewText(goalPrompt, maxMessageChars),
    status,
    launchedAt: new Date(launchedAt).toISOString(),
    ...(completedAt !== undefined && { completedAt: new Date(completedAt).toISOString() }),
    ...(progress !== undefined && { progress }),
    ...(questions !== undefined && { questions }),
    ...(result !== '' && { result: previewText(result, maxMessageChars) }),
    ...(written !== undefined && { output: { text: written.text, remainingBytes: written.remainingBytes } }),
  }
}

function taskIdOf(uri: string): string {
  try {
    return uri.startsWith(SCHEME) ? decodeURIComponent(uri.slice(SCHEME.length)) : ''
  } catch {
    return ''
  }
}
