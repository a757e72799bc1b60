/** The parameters that let a task wait before it starts: for other tasks (promise F15), or for a key (promise F18). */
import { z } from 'zod'
import { ownerOfRun } from '../../machines/run-owner.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { lookUpTask } from '../features/task-ids/task-lookup.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { lazily } from '../protocol/lazily.js'
import { concurrencyKey, MAX_AFTER, ON_FAILED_DEPENDENCY, type LaunchTaskInput } from '../protocol/async-tasks.js'
import { isoTime } from '../data/duration.js'
import { validationError, type ToolResult } from './tool.js'

export const keyField = lazily(() =>
  concurrencyKey()
    .optional()
    .describe('Tasks and commands with the same key run one at a time, in the order of their launch.'),
)

export const afterFields = lazily(() => ({
  after: z
    .array(z.string())
    .max(MAX_AFTER)
    .optional()
    .describe('With async: true: IDs of tasks that have to end before it starts.'),
  on_failed_dependency: z
    .enum(ON_FAILED_DEPENDENCY)
    .optional()
    .describe('If one of them fails or is cancelled: fail, too (default), or run anyway.'),
}))

export const AFTER_TEXTS = {
  after: 'With async: IDs of tasks that must end first.',
  on_failed_dependency: '',
  concurrency_key: 'One at a time with this key.',
} as const

interface WaitParams {
  readonly after?: readonly string[] | undefined
  readonly on_failed_dependency?: LaunchTaskInput['onFailedDependency']
  readonly concurrency_key?: LaunchTaskInput['concurrencyKey']
}

interface NamingCall {
  readonly tool: string
  readonly manager: AsyncTaskManager
  readonly owner: string | undefined
  readonly parentId?: string | undefined
  readonly isAsync: boolean
}

/** Converts the parameters to the input of a launch, or returns a result with an error. An id may be a unique prefix, as in every tool. */
export function readWaits(
  { after = [], on_failed_dependency: onFailedDependency, concurrency_key: concurrencyKey }: WaitParams,
  { tool, manager, isAsync, parentId, owner: given = DEFAULT_OWNER }: NamingCall,
): { readonly input: Partial<LaunchTaskInput> } | { readonly refusal: ToolResult } {
  if (after.length === 0) return { input: omitUndefined({ concurrencyKey }) }
  if (!isAsync) return { refusal: validationError(tool, 'params.after', after, 'nothing without async: true') }
  const owner = parentId === undefined ? given : ownerOfRun(parentId)
  const ids: string[] = []
  for (const [index, named] of after.entries()) {
    const found = lookUpTask(manager, named, owner)
    if (found.type === 'found') {
      ids.push(found.task.id)
      continue
    }
    const expected =
      found.type === 'ambiguous'
        ? `the id of one task; ${found.candidates.length} tasks have ids that begin like this`
        : found.pruned === undefined
          ? 'the id of a task that is kept; you have none with this id'
          : `the id of a task that is kept; the record of this one was pruned at ${isoTime(found.pruned.prunedAt)}`
    return { refusal: validationError(tool, `params.after[${index}]`, named, expected) }
  }
  return { input: { after: ids, ...omitUndefined({ onFailedDependency, concurrencyKey }) } }
}
