/** The positions of waiting tasks in their queues. */
import type { RegistryReads } from '../registry-reads.js'

/** The position of each waiting task by id, from 1. */
export function queuePlaces({ pools }: Pick<RegistryReads, 'pools'>): ReadonlyMap<string, number> {
  return new Map(
    pools
      .all()
      .flatMap(({ queue }) => queue.inOrder().map(({ record }, index): [string, number] => [record.id, index + 1])),
  )
}
