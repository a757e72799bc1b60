/**
 * The results of commands in messages. Small results are included. Larger results are replaced by a reference, so that no message becomes too large for
 * a reader.
 */
import { resultBytes } from '../../command-tasks/task-bytes.js'
import type { ResultReference, Task, TaskCompleteMessage, TaskProgressMessage } from '../../protocol/command-tasks.js'

/** The maximum size of an included result, in bytes of JSON. */
export const MAX_INLINE_RESULT_BYTES = 256 * 1024
/** The maximum size of all results in a message, in bytes of JSON. */
export const MAX_INLINE_BYTES = 1024 * 1024

type WithResult = { readonly result?: unknown; readonly resultRef?: ResultReference | undefined }

/** Returns the task with the results that fit. The first results come first. */
export function withInlineResults(task: Task): Task {
  const commands = boundAll(task.commands, task.id)
  return commands === task.commands ? task : { ...task, commands }
}

/** Returns the event with the results that fit. */
export function eventWithInlineResults(
  message: TaskProgressMessage | TaskCompleteMessage,
): TaskProgressMessage | TaskCompleteMessage {
  if (message.type === 'task_progress') return boundOne(message, message.taskId, message.commandIndex, MAX_INLINE_BYTES)
  const results = boundAll(message.results, message.taskId)
  return results === message.results ? message : { ...message, results }
}

/** Returns the same list when every result fits, which is the usual case. */
function boundAll<Item extends WithResult>(items: Item[], taskId: string): Item[] {
  let room = MAX_INLINE_BYTES
  const bounded = items.map((item, index) => {
    const shown = boundOne(item, taskId, index, room)
    if (shown === item && item.result !== undefined) room -= resultBytes(item.result)
    return shown
  })
  return bounded.some((item, index) => item !== items[index]) ? bounded : items
}

function boundOne<Item extends WithResult>(item: Item, taskId: string, index: number, room: number): Item {
  if (item.result === undefined) return item
  const bytes = resultBytes(item.result)
  if (bytes <= Math.min(room, MAX_INLINE_RESULT_BYTES)) return item
  const { result: _tooLarge, ...rest } = item
  return { ...rest, resultRef: { path: `/tasks/${taskId}/commands/${index}/result`, bytes } } as Item
}
