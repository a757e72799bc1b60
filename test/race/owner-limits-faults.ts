/** Planted faults of the limits of each owner: each wraps a part of a manager. */
import type { TaskEntry } from '../../machines/task-entry.js'
import { spentByOwner } from '../../src/features/limits/spent-by-owner.js'
import type { AlterManager } from './owner-limits.property.js'

export interface OwnerLimitFault {
  readonly name: string
  readonly invariant: 'H9'
  readonly description: string
  readonly alter: AlterManager
}

export const ownerLimitFaults: readonly OwnerLimitFault[] = [
  {
    name: 'owner-starts-above-its-limit',
    invariant: 'H9',
    description: 'a launch starts when a slot is free, however many its owner holds',
    alter: ({ registry: { pools } }) => {
      pools.task.hasRoomFor = () => pools.task.hasRoom()
    },
  },
  {
    name: 'owner-blocks-the-queue',
    invariant: 'H9',
    description: 'the first task in the queue keeps the others from starting while its owner has no room',
    alter: ({ registry }) => {
      const { task } = registry.pools
      task.queue.peek = () => {
        const first = task.queue.inOrder().find((entry) => !task.queue.isHeld(entry))
        return first !== undefined && task.mayOwnerTake(first) ? first : undefined
      }
    },
  },
  {
    name: 'blocked-for-ever',
    invariant: 'H9',
    description: 'a task that was skipped because of its owner is not looked at again',
    alter: ({ registry }) => {
      registry.pools.task.queue.unblock = () => undefined
    },
  },
  {
    name: 'owner-fills-the-queue',
    invariant: 'H9',
    description: 'the waiting tasks of one owner may fill the queue',
    alter: ({ registry }) => {
      registry.pools.task.queue.hasRoomFor = () => true
    },
  },
  {
    name: 'reservation-counts-for-nobody',
    invariant: 'H9',
    description: 'a reservation does not count for its owner',
    alter: ({ registry: { pools } }) => {
      const reserve = pools.task.reserve.bind(pools.task)
      pools.task.reserve = (id, ttlMs) => reserve(id, ttlMs)
    },
  },
  {
    name: 'transfer-counts-for-the-old-owner',
    invariant: 'H9',
    description: 'a transferred task counts for the owner that launched it',
    alter: ({ registry }) => {
      registry.pools.ownerChanged = () => undefined
    },
  },
  {
    name: 'records-pushed-out',
    invariant: 'H9',
    description: 'all owners together have one limit of kept records',
    alter: ({ registry: { history } }) => {
      const kept = new Set<TaskEntry>()
      const gone = new Set<TaskEntry>()
      const [add, entries] = [history.offer.bind(history), history.entries.bind(history)]
      history.offer = (entry) => {
        add(entry)
        if (entry.isHandled && entry.record.delivery === 'delivered') kept.add(entry)
        for (const oldest of kept) {
          if (kept.size <= 2) return
          kept.delete(oldest)
          gone.add(oldest)
        }
      }
      history.entries = () => [...entries()].filter((entry) => !gone.has(entry)).values()
    },
  },
  {
    name: 'spent-by-owner-not-stored',
    invariant: 'H9',
    description: 'a restart forgets what the pruned tasks of an owner have used',
    alter: ({ registry: { persistence } }) => {
      const keepState = persistence?.keepState.bind(persistence)
      if (persistence === undefined) return
      persistence.keepState = (feature, ...row) => (feature === 'spent' ? undefined : keepState?.(feature, ...row))
    },
  },
  {
    name: 'spent-by-the-wrong-owner',
    invariant: 'H9',
    description: 'what the tasks of one owner use counts for another',
    alter: ({ registry }) => {
      const sums = registry.use(spentByOwner)
      const spent = sums.spent.bind(sums)
      sums.spent = (owner, ...used) => spent(owner === 'bob' ? 'ann' : owner, ...used)
    },
  },
]
