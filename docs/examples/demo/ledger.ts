/**
 * The demo's own book-keeping. It counts what the agent accepted by reading the messages, and does not ask the library
 * what it believes to have told.
 */
import type { AsyncTaskManager, TerminalStatus } from 'agent-tasks'
import type { DeliveryVerdict } from 'agent-tasks/testing/ledger'

export interface Ledger {
  /** The agent accepted this text. */
  accept(text: string): void
  /** The ids of every task whose result a text carries. */
  idsIn(text: string): string[]
  summary(): LedgerSummary
}

export interface LedgerSummary {
  readonly launched: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  /** Still to be told by the library's own account. */
  readonly owed: number
  /** Told, by the library's own account. */
  readonly delivered: number
  /** Ended with a result that the agent never got. */
  readonly lost: number
  /** Results that the agent got more than once. */
  readonly duplicated: number
}

export function keepLedger(manager: AsyncTaskManager): Ledger {
  const launched = new Set<string>()
  const ended: Record<TerminalStatus, string[]> = { completed: [], failed: [], cancelled: [] }
  const timesTold = new Map<string, number>()
  let delivered = 0
  manager.transitions$.subscribe((transition) => {
    if (transition.kind === 'delivery' && transition.to === 'delivered') delivered += 1
    if (transition.kind !== 'status') return
    if (transition.to === 'running') launched.add(transition.taskId)
    else ended[transition.to].push(transition.taskId)
  })
  const idsIn = (text: string): string[] =>
    Array.from(text.matchAll(/^ {2}"agent_id": "([^"]+)"/gm), (match) => match[1] ?? '')
  return {
    idsIn,
    accept: (text) => {
      for (const id of idsIn(text)) timesTold.set(id, (timesTold.get(id) ?? 0) + 1)
    },
    summary: () => ({
      launched: launched.size,
      completed: ended.completed.length,
      failed: ended.failed.length,
      cancelled: ended.cancelled.length,
      owed: manager.getAllTasks().filter(({ delivery }) => delivery === 'owed' || delivery === 'leased').length,
      delivered,
      lost: [...ended.completed, ...ended.failed].filter((id) => !timesTold.has(id)).length,
      duplicated: [...timesTold.values()].filter((times) => times > 1).length,
    }),
  }
}

/** What the recorder of the package found, in a line; each problem in one of its own. */
export function describeVerdict({ isClean, counts, ...verdict }: DeliveryVerdict): string {
  const { tasks, owed, delivered } = counts
  if (isClean) {
    return `An independent recorder agrees: ${tasks} tasks, ${owed} results owed, ${delivered} delivered, no problem.`
  }
  const kinds = [verdict.lost, verdict.duplicated, verdict.outOfOrder, verdict.stranded]
  const problems = kinds.flat().map(({ taskId, message }) => `\n  ${taskId}: ${message}`)
  return `An independent recorder disagrees:${problems.join('')}`
}
