/** Tasks of a history. */
import type { PastTask } from '../../../src/store/history/task-history.js'

/** The time of the tests, in ms since the epoch. */
export const NOW = 1_800_000_000_000

/** @param ago how long before `NOW` the task has ended, in ms */
export const past = (id: string, ago: number, fields: Partial<PastTask> = {}): PastTask => ({
  id,
  kind: 'task',
  owner: 'main',
  name: 'research',
  status: 'completed',
  completedAt: NOW - ago,
  record: { id, goalPrompt: `goal of ${id}`, output: { final_message: 'done' } },
  ...fields,
})
