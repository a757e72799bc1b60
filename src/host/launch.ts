/** `tasks.launch`: starts a task of one of the host's subagents. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { defined } from '../defined.js'
import { InvalidInputError } from '../errors.js'
import { cutText } from '../text/cut-text.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { definitionOf } from '../tools/subagents.js'
import type { Subagents } from './subagent-outputs.js'
import { createTaskHandle, type TaskHandle } from './task-handle.js'

/**
 * Options of `tasks.launch`: those of `manager.launch`. The default `owner` is the host's. There is no default `timeoutMs`, because the deadline
 * settings apply to the tools only. A subagent receives the fields of `params` in its request, such as `context`.
 */
export type LaunchOptions = Omit<LaunchTaskInput, 'subagentName' | 'goalPrompt' | 'kind' | 'command'>

/** The maximum length of the list of subagents in an error, in characters. */
const NAMES_CHARS = 1000

/**
 * Starts a task and creates its handle.
 * @throws InvalidInputError for an unknown subagent, and the errors of `manager.launch`
 */
export function launchTask(
  { manager, subagents, owner }: { manager: AsyncTaskManager; subagents: Subagents; owner: string },
  name: string,
  goal: string,
  options: LaunchOptions = {},
): TaskHandle {
  const subagent = Object.hasOwn(subagents, name) ? subagents[name] : undefined
  if (subagent === undefined) throw new InvalidInputError('name', name, knownNames(Object.keys(subagents)))
  const { reads } = manager
  const { parentId, owner: given = parentId === undefined ? owner : undefined, ...rest } = options
  // In one batch, so that the task is still kept when its handle is created, even if it ends at once.
  return reads.batch(() => {
    const input = { ...rest, ...defined({ parentId, owner: given }), subagentName: name, goalPrompt: goal }
    return handleOf(manager, manager.launch(input, definitionOf(subagent)))
  })
}

/** Returns the handle of a task that was launched in the same batch. */
export function handleOf(manager: AsyncTaskManager, { id }: ActiveTaskInfo): TaskHandle {
  const entry = manager.reads.history.get(id)
  if (entry === undefined) throw new Error(`Task ${id} was removed right after its launch.`)
  return createTaskHandle(manager, entry)
}

function knownNames(names: readonly string[]): string {
  return names.length === 0
    ? 'the name of a subagent (there are none)'
    : `one of ${cutText(names.join(', '), NAMES_CHARS)}`
}
