/** Maps the path of a POST request to the action that handles it. */
import { parseInput } from '../protocol/parse.js'
import { postEvent } from '../server/http/post-event.js'
import { madeTask, nothingSchema, type Answer } from './answers.js'
import { actOnMany } from './bulk.js'
import { rowActions } from './row-actions.js'
import { runAgain } from './run-again.js'
import type { Sources } from './sources.js'
import { taskActions, type TaskAction } from './task-actions.js'

/** Like `Answer`, but with any body. */
type AnyAnswer = { readonly status: number; readonly body: object }

/**
 * Returns the action of a path; undefined if there is none.
 * @param path the segments of the path after `/api/`
 * @param onFailure called with an error that the request did not cause
 */
export function actionAt(
  sources: Sources,
  path: readonly string[],
  onFailure: (error: unknown) => void,
): ((body: unknown) => AnyAnswer | Promise<AnyAnswer>) | undefined {
  const [kind = '', key = '', action = ''] = path
  const { emit } = sources
  if (path.length === 1 && kind === 'events' && emit !== undefined) return (body) => postEvent(body, emit)
  if (path.length === 1 && kind === 'bulk') {
    return async (body) => ({ status: 200, body: await actOnMany(sources, body, onFailure) })
  }
  if (path.length !== 3) return undefined
  if (kind === 'history' && action === 'run-again') return (body) => runAgainOf(sources, key, body)
  const onRow = own(rowActions, `${kind}/${action}`)
  if (onRow !== undefined) return (body) => onRow(sources, key, body)
  const onTask = kind === 'tasks' ? own(taskActions, action) : undefined
  return onTask && ((body) => actOn(onTask, sources, key, body))
}

const own = <T>(from: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(from, name) ? from[name] : undefined

const gone: Answer = {
  status: 404,
  body: { error: 'The page no longer has this task. It keeps only the latest tasks.', code: 'NOT_FOUND' },
}

const actOn = (action: TaskAction, sources: Sources, key: string, body: unknown): Answer | Promise<Answer> => {
  const entry = sources.state.journal.get(key)
  return entry === undefined ? gone : action(sources, entry, body)
}

/** Runs a task again, even if only the history in the store still has it. */
async function runAgainOf(sources: Sources, key: string, body: unknown): Promise<Answer> {
  parseInput(nothingSchema(), body, 'body')
  return madeTask(await runAgain(sources, key))
}
