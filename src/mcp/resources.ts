/**
 * Tasks as MCP resources. `task://<id>` is the state of a task and the end of its output, as JSON. Clients are notified when a task or the list of tasks
 * changes.
 */
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import { filter, map, merge, type Observable } from 'rxjs'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { previewText } from '../features/output/bounded-text.js'
import { formatCompletionNotification } from '../features/delivery/notifications.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { isSeenBy, rootOwner } from '../features/families/families.js'
import { visibleTasks } from '../features/task-ids/task-lookup.js'
import type { Clock } from '../system/clock.js'
import { stoppingFields } from '../features/stopping/stopping.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Backend } from './backend.js'
import type { HandlerRegistry } from './low-level-server.js'

const SCHEME = 'task://'
const MIME_TYPE = 'application/json'
const PAGE_SIZE = 100
/** The maximum number of characters that an error shows of an unknown URI. */
const MAX_URI_CHARS = 200
/** Changes within this time are sent as one notification, in ms. */
const GATHER_MS = 100

export const taskUri = (taskId: string): string => `${SCHEME}${encodeURIComponent(taskId)}`

export interface ResourceChange {
  readonly owner: string
  readonly uri: string
  /** Whether the task was added to the list or removed from it. */
  readonly isListChange: boolean
}

/** Every change that is visible in a task's resource. */
export function resourceChanges({ manager }: Backend): Observable<ResourceChange> {
  const toChange = ({ taskId, owner }: { taskId: string; owner: string }): ResourceChange => ({
    owner: seenBy(manager, taskId, owner),
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

/** The owner of the first task of the family. A pruned task has no known family, so it is its own owner. */
function seenBy(manager: AsyncTaskManager, taskId: string, owner: string): string {
  const task = manager.getTask(taskId)
  return task?.owner === owner ? rootOwner(manager, task) : owner
}

/**
 * Notifies a listener of changes. Several changes of one resource within a short time become one notification.
 * @returns a function that stops the notifications
 */
export function feedResources(
  changes: Observable<ResourceChange>,
  listener: { readonly onUpdate: (uri: string) => void; readonly onListChange: () => void },
  clock: Clock,
): () => void {
  const updated = new Set<string>()
  let hasListChanged = false
  let timer: unknown
  const flush = (): void => {
    timer = undefined
    const uris = [...updated]
    updated.clear()
    if (hasListChanged) listener.onListChange()
    hasListChanged = false
    for (const uri of uris) listener.onUpdate(uri)
  }
  const subscription = changes.subscribe((change) => {
    if (change.isListChange) hasListChanged = true
    updated.add(change.uri)
    timer ??= clock.setTimeout(flush, GATHER_MS)
  })
  return () => {
    subscription.unsubscribe()
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
  }
}

/**
 * Registers resources/list and resources/read for one owner's tasks.
 * @param options.isListed whether resources/list shows the tasks; if not, they can only be read by URI
 */
export function registerResources(
  server: HandlerRegistry,
  backend: Backend,
  owner: string,
  { isListed }: { readonly isListed: boolean },
): void {
  server.setRequestHandler('resources/list', ({ params }) => {
    const tasks = isListed ? visibleTasks(backend.manager, owner) : []
    const start = params?.cursor === undefined ? 0 : Number(params.cursor)
    if (!Number.isSafeInteger(start) || start < 0) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'cursor: expected the nextCursor of an earlier result.')
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
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const task = taskOf(backend.manager, owner, uri)
    return { contents: [{ uri, mimeType: MIME_TYPE, text: JSON.stringify(contentOf(backend, task), null, 2) }] }
  })
}

export function registerTemplates(server: HandlerRegistry): void {
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: `${SCHEME}{task_id}`,
        name: 'task',
        title: 'A background task',
        description: 'Its status, questions and result, and the end of its output.',
        mimeType: MIME_TYPE,
      },
    ],
  }))
}

/** Reading a resource does not acknowledge a result, because hosts read resources without showing them to the model. */
function contentOf(backend: Backend, task: AsyncTaskInfo): Record<string, unknown> {
  const { manager, session, config } = backend
  const { maxMessageChars } = config
  const { id, subagentName, goalPrompt, status, launchedAt, completedAt, progress, questions, cancelReason, isRepeat } =
    task
  const written = manager.readOutput(id, { maxBytes: maxMessageChars })
  const result = formatCompletionNotification(task)
  return {
    id,
    subagent: subagentName,
    goal: previewText(goalPrompt, maxMessageChars),
    status,
    ...omitUndefined({
      parentId: task.parentId,
      after: task.after,
      waitsFor: task.waitsFor,
      continues: task.continues,
    }),
    ...omitUndefined({ concurrencyKey: task.concurrencyKey, waits: manager.reads.waitReasons(task).own?.text }),
    launchedAt: new Date(launchedAt).toISOString(),
    ...(completedAt !== undefined && { completedAt: new Date(completedAt).toISOString() }),
    ...omitUndefined({ progress, questions, cancelReason }),
    ...stoppingFields(manager.reads, id),
    ...(session?.earlierTasks.has(id) === true && { isOfEarlierSession: true }),
    ...(isRepeat === true && { isRepeat }),
    ...(result !== '' && { result: previewText(result, maxMessageChars) }),
    ...(written !== undefined && { output: { text: written.text, remainingBytes: written.remainingBytes } }),
  }
}

/**
 * The task of a URI.
 * @throws ResourceNotFoundError, which is the same for another owner's task and for an unknown one
 */
export function taskOf(manager: AsyncTaskManager, owner: string, uri: string): AsyncTaskInfo {
  const task = manager.getTask(taskIdOf(uri))
  if (task === undefined || !isSeenBy(manager, task, owner)) {
    throw new ResourceNotFoundError(previewText(uri, MAX_URI_CHARS))
  }
  return task
}

export function taskIdOf(uri: string): string {
  try {
    return uri.startsWith(SCHEME) ? decodeURIComponent(uri.slice(SCHEME.length)) : ''
  } catch {
    return ''
  }
}
