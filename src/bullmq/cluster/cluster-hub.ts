/**
 * The hub of a node (promise N3). A subscription starts at a place in the event log. Live events are held back while older ones are read from Redis, so
 * that each subscriber gets each event once and in order, on any node.
 */
import type { TaskEvent } from '../../task-backend/event-log.js'
import { createHub, type Deliver, type EventSource, type Hub } from '../../task-backend/hub.js'

export interface ClusterHubOptions {
  readonly source: EventSource
  /** Reads the events of a task after a place. */
  readonly read: (taskId: string, after: number) => Promise<readonly TaskEvent[]>
  readonly onError: (error: unknown) => void
}

export interface ClusterHub extends Hub {
  /** Handles a possible gap: subscribers of tasks read on from their last place, subscribers of instances are notified of it. */
  catchUpAll(): void
}

/** How many ended tasks a subscriber of instances remembers. An end can arrive live, and again with the events that are read from Redis; it is delivered once. */
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
      /** Live events of tasks whose older events are being read. */
      const waiting = new Map<string, TaskEvent[]>()
      /** The place of the last delivered event, for tasks that run and for the most recently ended ones. */
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
          // A subscriber of the instance gets all of its events, and `seen` may be ahead of what it received.
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
