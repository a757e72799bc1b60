import type { StoredTask } from '../../../src/store/store.js'

/** A task whose result is owed to `main`. */
export const storedTask = (id: string, more: Partial<StoredTask> = {}): StoredTask => ({
  id,
  owner: 'main',
  status: 'completed',
  delivery: 'owed',
  attempt: 1,
  seq: 1,
  launchedAt: 0,
  record: {},
  ...more,
})
