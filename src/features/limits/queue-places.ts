/** Finds the positions of waiting tasks in their queues. */
import type { RegistryReads } from '../../async-tasks/registry-reads.js'

/** Returns the position of each waiting task in its queue, by task id. The first task has the position 1. */
export function queuePlaces({ pools }: Pick<RegistryReads, 'pools'>): ReadonlyMap<string, number> {
  return new Map(
    pools
      .all()
      .flatMap(({ queue }) => queue.inOrder().map(({ record }, index): [string, number] => [record.id, index + 1])),
  )
}
