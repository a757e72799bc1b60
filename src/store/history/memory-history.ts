/** A history in memory. */
import { jsonBytes } from '../../data/json-size.js'
import {
  excessOf,
  byEnd,
  isBefore,
  SWEEP,
  type PastTask,
  type PastTaskQuery,
  type RetentionLimits,
  type TaskHistory,
} from './task-history.js'
import { haveWords, wordsIn, wordsOf } from './search-words.js'

/**
 * Creates a history in memory.
 * @param tasks the content, as JSON text by kind and id; default: empty
 */
export function memoryHistory(
  limits: Required<RetentionLimits>,
  now: () => number,
  tasks: Map<string, string> = new Map<string, string>(),
): TaskHistory {
  const all = (): PastTask[] => Array.from(tasks.values(), (text) => JSON.parse(text) as PastTask)
  const sweep = (): void => {
    const earliest = all().sort((a, b) => byEnd(b, a))
    const sized = earliest.map((task) => ({ completedAt: task.completedAt, bytes: jsonBytes(task) }))
    const total = { tasks: sized.length, bytes: sized.reduce((sum, { bytes }) => sum + bytes, 0) }
    for (const task of earliest.slice(0, excessOf(sized, total, limits, now()))) tasks.delete(keyOf(task.kind, task.id))
  }
  let sinceSweep = 0
  return {
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws rejects
    add: async (added) => {
      for (const [key, text] of added.map((task) => [keyOf(task.kind, task.id), JSON.stringify(task)] as const)) {
        tasks.set(key, text)
      }
      sinceSweep += added.length
      if (sinceSweep < SWEEP.every) return
      sinceSweep = 0
      sweep()
    },
    find: (kind, id) => {
      const text = tasks.get(keyOf(kind, id))
      return Promise.resolve(text === undefined ? undefined : (JSON.parse(text) as PastTask))
    },
    query: (query) => Promise.resolve(all().filter(matches(query)).sort(byEnd).slice(0, query.limit)),
  }
}

const keyOf = (kind: PastTask['kind'], id: string): string => `${kind} ${id}`

export function matches({ kind, owner, name, status, text, before }: PastTaskQuery): (task: PastTask) => boolean {
  const wanted = text === undefined ? [] : wordsOf(text)
  return (task) =>
    task.kind === kind &&
    (owner === undefined || task.owner === owner) &&
    (name === undefined || task.name === name) &&
    (status === undefined || task.status === status) &&
    isBefore(task, before) &&
    (wanted.length === 0 || haveWords(wordsIn(task.record), wanted))
}
