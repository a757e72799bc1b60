/** Counts the actors in each state of each machine. */
import { deliveryStates } from '../features/delivery/delivery-states.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { Journal } from './journal.js'
import type { PageEntry } from './page-entry.js'
import type { MachineCounts, PageTaskKind } from './wire.js'

export interface CountedParts {
  readonly journal: Journal<PageEntry>
  readonly manager: AsyncTaskManager | undefined
  readonly taskManager: TaskManager | undefined
}

/** Returns the counts by the id of a machine and the path of a state. Ended tasks count while the journal has them. */
export function machineCounts({ journal, manager, taskManager }: CountedParts): MachineCounts {
  return {
    ...(manager && { asyncTask: taskCounts(journal, 'async'), delivery: countOf(deliveryPaths(manager)) }),
    ...(taskManager && {
      commandTask: taskCounts(journal, 'command'),
      lane: countOf(taskManager.lanes.map(({ state }) => state)),
      instance: countOf(taskManager.instances.list().map(({ ref }) => pathOf(ref.getSnapshot().value))),
    }),
  }
}

function taskCounts(journal: Journal<PageEntry>, kind: PageTaskKind): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const [state, count] of journal.counts(kind)) {
    // The machines have no state `timed-out`. A task that timed out is in the state `failed`.
    const name = state === 'timed-out' ? 'failed' : state
    if (count > 0) counts[name] = (counts[name] ?? 0) + count
  }
  return counts
}

function* deliveryPaths({ reads }: AsyncTaskManager): Generator<string, void> {
  const states = reads.use(deliveryStates)
  for (const owner of states.owners()) for (const { path } of states.of(owner)) yield path
}

function countOf(paths: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const path of paths) counts[path] = (counts[path] ?? 0) + 1
  return counts
}

/** The state of a machine: a name, or an object that has the nested state under the name of the parent state. */
type StateValue = string | { readonly [name: string]: StateValue | undefined }

function pathOf(value: StateValue): string {
  if (typeof value === 'string') return value
  return Object.entries(value)
    .map(([name, inner]) => (inner === undefined ? name : `${name}.${pathOf(inner)}`))
    .join()
}
