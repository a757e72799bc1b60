/** The results in one answer to a call: those of the tool itself, and undelivered results of the client's other tasks. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server'
import type { HeldLease, HoldLease } from '../features/delivery/leases.js'
import type { AsyncTaskReminderService } from '../features/delivery/reminder-service.js'
import { leaseOwed } from '../tools/overdue-notifications.js'
import type { McpResult } from './mcp-tool.js'

/** The leases of the results in one answer. They are acknowledged or released together. */
export class CarriedResults {
  readonly #leases: HeldLease[] = []

  readonly hold: HoldLease = (lease) => {
    this.#leases.push(lease)
  }

  get taskIds(): readonly string[] {
    return [...new Set(this.#leases.flatMap(({ taskIds }) => taskIds))]
  }

  /** Acknowledges the results if the answer was written out. Otherwise the results are owed again. */
  end(isWritten: boolean): void {
    // In one tick, so that the messages of one answer do not confirm each other.
    for (const lease of this.#leases.splice(0)) {
      if (isWritten) lease.acknowledge()
      else lease.release()
    }
  }
}

/** Adds undelivered results to an answer, because the server cannot notify a client between its calls. */
export async function addOwed(
  result: McpResult,
  carried: CarriedResults,
  reminders: AsyncTaskReminderService,
  owner: string,
): Promise<McpResult> {
  if (!isToolResult(result)) return result
  const reminder = await leaseOwed(reminders, owner)
  if (reminder === undefined) return result
  carried.hold(reminder)
  return addText(result, reminder.text)
}

export function addNotes(result: McpResult, notes: readonly string[]): McpResult {
  return isToolResult(result) && notes.length > 0 ? addText(result, notes.join('\n')) : result
}

export function addText(result: CallToolResult, text: string): CallToolResult {
  const { content, structuredContent: structured } = result
  const shown = { ...result, content: [...content, { type: 'text', text } as const] }
  return structured === undefined ? shown : { ...shown, structuredContent: withText(structured as Fields, text) }
}

export function addImages(result: McpResult, images: readonly ContentBlock[]): McpResult {
  return isToolResult(result) && images.length > 0 ? { ...result, content: [...result.content, ...images] } : result
}

type Fields = Readonly<Record<string, unknown>>

/** Adds a text to structured content, too, because some clients show the model only that. */
export function withText(structured: Fields, text: string): Fields {
  return typeof structured['text'] === 'string'
    ? { ...structured, text: `${structured['text']}\n\n${text}` }
    : structured
}

export const isToolResult = (result: McpResult): result is CallToolResult => Array.isArray(result['content'])
