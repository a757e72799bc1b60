/**
 * Delivers the events of tasks to the subscribers on one server (promise N3). A subscription starts at a sequence number of the task's event log.
 * Live events wait while older ones are read from Redis. So each subscriber receives each event once and in order, on any server.
 */
import type { TaskEvent } from '../../server/backend/event-log.js'
import { createHub, type Deliver, type EventSource, type Hub } from '../../server/backend/hub.js'

export interface ClusterHubOptions {
  readonly source: EventSource
  /** Reads the events of a task whose sequence numbers are greater than `after`. */
  readonly read: (taskId: string, after: number) => Promise<readonly TaskEvent[]>
  readonly onError: (error: unknown) => void
}

export interface ClusterHub extends Hub {
  /**
   * Handles a possible gap in the events. Subscribers of tasks read the missing events from Redis. Subscribers of instances are only notified of the
   * gap.
   */
  catchUpAll(): void
}

/** How many ended tasks a subscriber remembers. The end of a task can arrive twice, live and from Redis; a remembered end is not delivered again. */
const ENDED_SEEN = 256

export function createClusterHub({ source, read, onError }: ClusterHubOptions): ClusterHub {
  const hub = createHub(source)
  const members = new Set<() => void>()
  return {
    get size() {
      return hub.size
    },
    dispose: () => {
      members.clear()
      hub.dispose()
    },
    catchUpAll: () => members.forEach((catchUp) => catchUp()),
    join: (deliver, maxSubscriptions, onMissed = () => undefined) => {
      /** Live events that wait while older events of the same task are being read from Redis. */
      const waiting = new Map<string, TaskEvent[]>()
      /** The sequence number of the last delivered event, for running tasks and for the most recently ended ones. */
      const seen = new Map<string, number>()
      const ended = new Set<string>()
      const followed = new Set<string>()
      const instances = new Set<string>()

      const note = (taskId: string, seq: number, isOver: boolean): void => {
        seen.set(taskId, seq)
        if (!isOver) return
        ended.add(taskId)
        for (const oldest of ended) {
          if (ended.size <= ENDED_SEEN) break
          ended.delete(oldest)
          seen.delete(oldest)
        }
      }
      const pass: Deliver = (event) => {
        const { taskId } = event.message
        if (event.seq <= (seen.get(taskId) ?? 0)) return
        note(taskId, event.seq, event.isComplete)
        deliver(event)
        if (!event.isComplete || !followed.delete(taskId)) return
        subscriptions.removeTask(taskId)
      }
      const catchUp = (taskId: string): void => {
        const held: TaskEvent[] = []
        waiting.set(taskId, held)
        void read(taskId, seen.get(taskId) ?? 0)
          .catch((error: unknown) => {
            onError(error)
            onMissed()
            return []
          })
          .then((events) => {
            if (waiting.get(taskId) !== held) return
            waiting.delete(taskId)
            for (const event of [...events, ...held]) pass(event)
          })
      }
      const catchUpFollowed = (): void => {
        if (instances.size > 0) onMissed()
        else followed.forEach(catchUp)
      }
      const subscriptions = hub.join((event) => {
        const held = waiting.get(event.message.taskId)
        if (held === undefined) pass(event)
        else held.push(event)
      }, maxSubscriptions)
      members.add(catchUpFollowed)
      return {
        get hasRoom() {
          return subscriptions.hasRoom
        },
        addTask: (taskId, after, instanceId) => {
          if (followed.has(taskId)) return true
          if (!subscriptions.addTask(taskId, after)) return false
          followed.add(taskId)
          // This subscriber already receives all events of the instance, so older events need not be read. `seen` does not show what was delivered,
          // because `hasSeen` changes it, too.
          if (instanceId !== undefined && instances.has(instanceId)) return true
          seen.set(taskId, Math.max(after, seen.get(taskId) ?? 0))
          catchUp(taskId)
          return true
        },
        addInstance: (instanceId) => {
          const isAdded = subscriptions.addInstance(instanceId)
          if (isAdded) instances.add(instanceId)
          return isAdded
        },
        hasSeen: (taskId, seq) => {
          if ((seen.get(taskId) ?? 0) >= seq) return true
          note(taskId, seq, true)
          return false
        },
        removeTask: (taskId) => {
          followed.delete(taskId)
          waiting.delete(taskId)
          seen.delete(taskId)
          subscriptions.removeTask(taskId)
        },
        removeInstance: (instanceId) => {
          instances.delete(instanceId)
          subscriptions.removeInstance(instanceId)
        },
        leave: () => {
          members.delete(catchUpFollowed)
          followed.clear()
          waiting.clear()
          subscriptions.leave()
        },
      }
    },
  }
}
