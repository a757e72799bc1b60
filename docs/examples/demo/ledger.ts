/**
 * The demo's own ledger. It counts the results in the messages that the agent accepted, without relying on the library's records.
 */
import type { AsyncTaskManager } from 'agent-tasks'
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
  /** Owed, according to the library. */
  readonly owed: number
  /** Delivered, according to the library. */
  readonly delivered: number
  /** Results that the agent never received. */
  readonly lost: number
  /** Results that the agent received more than once. */
  readonly duplicated: number
}

export function keepLedger(manager: AsyncTaskManager): Ledger {
  const launched = new Set<string>()
  const ended = { completed: [] as string[], failed: [] as string[], cancelled: 0 }
  const timesTold = new Map<string, number>()
  let delivered = 0
  manager.transitions$.subscribe((transition) => {
    if (transition.kind === 'delivery' && transition.to === 'delivered') delivered += 1
    if (transition.kind !== 'status') return
    if (transition.to === 'running' || transition.to === 'queued') launched.add(transition.taskId)
  })
  manager.onTaskCompleted(({ id }) => ended.completed.push(id))
  manager.onTaskFailed(({ id }) => ended.failed.push(id))
  manager.onTaskCancelled(() => (ended.cancelled += 1))
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
      cancelled: ended.cancelled,
      owed: manager.getAllTasks().filter(({ delivery }) => delivery === 'owed' || delivery === 'leased').length,
      delivered,
      lost: [...ended.completed, ...ended.failed].filter((id) => !timesTold.has(id)).length,
      duplicated: [...timesTold.values()].filter((times) => times > 1).length,
    }),
  }
}

/** The verdict of the package's recorder in one line, and one line per problem. */
export function describeVerdict({ isClean, counts, ...verdict }: DeliveryVerdict): string {
  const { tasks, owed, delivered } = counts
  if (isClean) {
    return `An independent recorder agrees: ${tasks} tasks, ${owed} results owed, ${delivered} delivered, no problem.`
  }
  const kinds = [verdict.lost, verdict.duplicated, verdict.outOfOrder, verdict.stranded]
  const problems = kinds.flat().map(({ taskId, message }) => `\n  ${taskId}: ${message}`)
  return `An independent recorder disagrees:${problems.join('')}`
}
