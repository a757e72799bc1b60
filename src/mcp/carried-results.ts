/** The results in one answer: those of the tool itself, and undelivered results of the client's other tasks. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server'
import type { HeldLease, HoldLease } from '../async-tasks/delivery/leases.js'
import type { AsyncTaskReminderService } from '../async-tasks/delivery/reminder-service.js'
import { leaseOwed } from '../tools/overdue-notifications.js'
import type { McpResult } from './mcp-tool.js'

/** The leases of one answer. They end together, as the answer does. */
export class CarriedResults {
  readonly #leases: HeldLease[] = []

  readonly hold: HoldLease = (lease) => {
    this.#leases.push(lease)
  }

  /** The tasks whose ends the answer contains. */
  get taskIds(): readonly string[] {
    return [...new Set(this.#leases.flatMap(({ taskIds }) => taskIds))]
  }

  /** Acknowledges the results of a written answer; otherwise they are owed again. */
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
  const { content, structuredContent } = result
  return {
    ...result,
    content: [...content, { type: 'text', text: reminder.text }],
    ...(structuredContent !== undefined && { structuredContent: withText(structuredContent as Fields, reminder.text) }),
  }
}

/** Adds the images of the results that an answer carries. */
export function addImages(result: McpResult, images: readonly ContentBlock[]): McpResult {
  return isToolResult(result) && images.length > 0 ? { ...result, content: [...result.content, ...images] } : result
}

type Fields = Readonly<Record<string, unknown>>

/** Some clients show the model the structured content alone. */
export function withText(structured: Fields, text: string): Fields {
  return typeof structured['text'] === 'string'
    ? { ...structured, text: `${structured['text']}\n\n${text}` }
    : structured
}

export const isToolResult = (result: McpResult): result is CallToolResult => Array.isArray(result['content'])
