/** Where the tasks that wait for a slot are in their queues. */
import type { RegistryReads } from '../registry-reads.js'

/** The place of each task that waits, from 1, by its id. */
export function queuePlaces({ pools }: Pick<RegistryReads, 'pools'>): ReadonlyMap<string, number> {
  return new Map(
    pools
      .all()
      .flatMap(({ queue }) => queue.inOrder().map(({ record }, index): [string, number] => [record.id, index + 1])),
  )
}
