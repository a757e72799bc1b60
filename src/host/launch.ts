/** Implements `tasks.launch`, which starts a task of one of the host's subagents. */
import type { z } from 'zod'
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError, limitReason, TaskLimitError } from '../errors.js'
import { cutText } from '../data/cut-text.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { nearestName } from '../data/nearest-name.js'
import type { Subagent } from '../tools/subagents.js'
import type { Subagents } from './subagent-outputs.js'
import { createTaskHandle, type TaskHandle } from './task-handle.js'

/**
 * The options of `tasks.launch`. They are those of `AsyncTaskManager.launch`, with two differences. The default `owner` is that of the host. And
 * `timeoutMs` has no default, because the time limits of the settings apply only to tools.
 */
export type LaunchOptions<Runnable = Subagent> = Omit<
  LaunchTaskInput,
  'subagentName' | 'goalPrompt' | 'kind' | 'command' | 'context'
> & {
  /** Data for the subagent, by name. Its type is the input type of the subagent's `contextSchema`. */
  readonly context?: SchemaOf<Runnable> extends infer Schema extends z.ZodType
    ? z.input<Schema>
    : Readonly<Record<string, unknown>>
}

/** The schema of the context, also of a definition whose `run` is a definition. */
type SchemaOf<Runnable> = Runnable extends
  | { readonly contextSchema: infer Schema extends z.ZodType }
  | { readonly run: { readonly contextSchema: infer Schema extends z.ZodType } }
  ? Schema
  : undefined

/** The options may be left out, unless the subagent has a `contextSchema` with a required field. */
export type LaunchArguments<Runnable> =
  SchemaOf<Runnable> extends infer Schema extends z.ZodType
    ? Partial<z.input<Schema>> extends z.input<Schema>
      ? [options?: LaunchOptions<Runnable>]
      : [options: LaunchOptions<Runnable> & { readonly context: z.input<Schema> }]
    : [options?: LaunchOptions<Runnable>]

/** The maximum length of the list of subagents in an error message, in characters. */
const NAMES_CHARS = 1000

/**
 * Starts a task and creates its handle.
 * @throws INVALID_INPUT for an unknown subagent
 * @throws the errors of `AsyncTaskManager.launch`
 */
export function launchTask(
  { manager, subagents, owner }: { manager: AsyncTaskManager; subagents: Subagents; owner: string },
  name: string,
  goal: string,
  options: LaunchOptions = {},
): TaskHandle {
  const subagent = Object.hasOwn(subagents, name) ? subagents[name] : undefined
  if (subagent === undefined) throw new InvalidInputError('name', name, knownNames(name, Object.keys(subagents)))
  if (typeof goal !== 'string') throw new InvalidInputError('goal', goal, 'a string')
  const { reads } = manager
  const { parentId, owner: given = parentId === undefined ? owner : undefined, ...rest } = options
  // Both steps are one batch. A task that ends at once could otherwise be removed before its handle is created.
  return reads.batch(() => {
    const input = {
      ...rest,
      ...omitUndefined({ parentId, owner: given }),
      subagentName: name,
      goalPrompt: goal,
    }
    let task: ActiveTaskInfo
    try {
      task = manager.launch(input, subagent)
    } catch (error) {
      throw withRemedy(error)
    }
    return handleOf(manager, task)
  })
}

/** Returns the handle of a task. Call this function in the batch that has launched the task. */
export function handleOf(manager: AsyncTaskManager, { id }: ActiveTaskInfo): TaskHandle {
  const entry = manager.reads.history.get(id)
  if (entry === undefined) throw new Error(`Task ${id} was removed right after its launch.`)
  return createTaskHandle(manager, entry)
}

function knownNames(name: unknown, names: readonly string[]): string {
  if (names.length === 0) return 'the name of a subagent (there are none)'
  const nearest = typeof name === 'string' ? nearestName(name, names) : undefined
  return `one of ${cutText(names.join(', '), NAMES_CHARS)}${nearest === undefined ? '' : `; the nearest is ${nearest}`}`
}

/** Adds to the error of a launch that found no free slot what the caller can do. Returns any other error unchanged, also that of a full queue. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof TaskLimitError) || error.message !== limitReason(error.maxAsyncTasks)) return error
  return new TaskLimitError(error.maxAsyncTasks, undefined, 'task', REMEDY)
}

const REMEDY = "Set whenFull: 'queue' to let launches wait, or raise maxAsyncTasks."
