import { inboxes } from './inbox.js'
import { z } from 'zod'
import { BUDGET_EXCEEDED } from '../../../machines/async-task.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { preview } from '../../data/preview.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { MAX_WAITING_MESSAGES, MAX_WAITING_BYTES } from './inbox.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { isWaiting } from '../../../machines/task-status.js'

/** The maximum length of a message, in bytes of UTF-8. */
const MAX_MESSAGE_BYTES = 64 * 1024

/** Whether a message was accepted. If not, `reason` says why, in words. */
export type SendResult = { readonly sent: true } | { readonly sent: false; readonly reason: string }

export const messageSchema = lazily(() => z.string().min(1))

/**
 * Passes a message to the run of a task. The run takes it at most once.
 * @throws INVALID_INPUT for a message that is not text
 */
export function sendMessage(registry: TaskRegistry, taskId: string, text: string): SendResult {
  const message = parseInput(messageSchema(), text, 'message')
  const name = `Task ${preview(taskId)}`
  const entry = registry.history.get(taskId)
  const reason =
    entry === undefined
      ? `There is no task ${preview(taskId)}.`
      : new TextEncoder().encode(message).length > MAX_MESSAGE_BYTES
        ? `A message has at most ${MAX_MESSAGE_BYTES} bytes.`
        : refusalOf(entry, name)
  if (entry === undefined || reason !== undefined) return { sent: false, reason: reason ?? '' }
  const inbox = inboxes.get(entry)
  if (inbox === undefined) return { sent: false, reason: `${name} takes no messages.` }
  switch (inbox.accept(message)) {
    case 'closed':
      return { sent: false, reason: `${name} does not read messages any more.` }
    case 'full':
      return {
        sent: false,
        reason: `${name} has not read its earlier messages: at most ${MAX_WAITING_MESSAGES} messages with ${MAX_WAITING_BYTES} bytes in total may wait.`,
      }
    case undefined:
      registry.send({ type: 'task.note', entry, fields: { messagesSent: (entry.record.messagesSent ?? 0) + 1 } })
      return { sent: true }
  }
}

function refusalOf({ record, ref }: TaskEntry, name: string): string | undefined {
  if (isTerminal(record)) return `${name} has ended: it is ${record.status}.`
  if (isWaiting(record.status)) return `${name} has not started.`
  const state = ref?.getSnapshot()
  if (state?.matches({ active: 'stopping' }) === true) {
    return `${name} is being stopped, because its deadline has passed.`
  }
  if (state?.matches({ active: 'wrapping' }) !== true) return undefined
  const why = state.context.excessCode === BUDGET_EXCEEDED ? ', because its budget is used up' : ''
  return `${name} is concluding${why}.`
}
