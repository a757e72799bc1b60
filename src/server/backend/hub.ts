/**
 * Routes the events of tasks to subscribers (promise S7). A subscriber gets each event once and in order, even if several of its subscriptions match.
 * Each event is serialized once for all subscribers. A subscription to a task ends when the task ends. A subscription to an instance ends when the
 * subscriber leaves.
 */
import type { TaskManager } from '../../command-tasks/task-manager.js'
import type { InstancePauseMessage, TaskCompleteMessage, TaskProgressMessage } from '../../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** A subscriber's function, which is called with each event. It must not throw. */
export type Deliver = (event: TaskEvent) => void

export interface Subscriptions {
  /** Whether the subscriber may have another subscription. */
  readonly hasRoom: boolean
  /**
   * Subscribes to a task. Returns false when the limit of subscriptions is reached. Subscribing again to the same task has no effect.
   * @param after the position of the last event that the subscriber has (see `FollowedTask`)
   * @param instanceId the instance of the task, if it is known
   */
  addTask(taskId: string, after: number, instanceId?: string): boolean
  addInstance(instanceId: string): boolean
  /** Returns whether the subscriber already has the last event of an ended task, and notes that it has the event from now on. */
  hasSeen(taskId: string, seq: number): boolean
  removeTask(taskId: string): void
  removeInstance(instanceId: string): void
  leave(): void
}

type OnPause = (message: InstancePauseMessage) => void

export interface Hub {
  /**
   * Adds a subscriber, without subscriptions.
   * @param maxSubscriptions the maximum number of subscriptions of this subscriber
   * @param onMissed called when the subscriber may have missed events that cannot be read again; it has to start over
   * @param onPause called when an instance that it subscribes to is paused or resumed
   */
  join(deliver: Deliver, maxSubscriptions: number, onMissed?: () => void, onPause?: OnPause): Subscriptions
  readonly size: number
  dispose(): void
}

interface Subscriber {
  readonly deliver: Deliver
  readonly onPause: OnPause | undefined
  readonly tasks: Set<string>
  readonly instances: Set<string>
}

type Index = Map<string, Set<Subscriber>>

export interface EventSource {
  /** Calls `publish` with each event in order, and `onPause` when an instance is paused or resumed. Returns a function that stops these calls. */
  listen(publish: Deliver, onPause: OnPause): () => void
}

/** The events of the tasks in this process. Each event is also appended to the log. */
export const eventsOf = (tasks: TaskManager, log: EventLog): EventSource => ({
  listen: (publish, onPause) => {
    const append = (message: TaskProgressMessage | TaskCompleteMessage): void => publish(log.append(message))
    tasks.on('progress', append).on('complete', append).on('pause', onPause)
    return () => void tasks.off('progress', append).off('complete', append).off('pause', onPause)
  },
})

export function createHub(source: EventSource): Hub {
  const byTask: Index = new Map()
  const byInstance: Index = new Map()

  const publish: Deliver = (event) => {
    const { message } = event
    const ofTask = byTask.get(message.taskId)
    const ofInstance = byInstance.get(message.instanceId)
    if (ofTask !== undefined) for (const { deliver } of ofTask) deliver(event)
    if (ofInstance !== undefined) {
      for (const subscriber of ofInstance) if (ofTask?.has(subscriber) !== true) subscriber.deliver(event)
    }
    event.releaseFrame()
    if (event.isComplete && ofTask !== undefined) {
      for (const subscriber of ofTask) subscriber.tasks.delete(message.taskId)
      byTask.delete(message.taskId)
    }
  }
  const stop = source.listen(publish, (message) => {
    for (const { onPause } of byInstance.get(message.instanceId) ?? []) onPause?.(message)
  })

  return {
    join: (deliver, maxSubscriptions, _onMissed, onPause) => {
      const subscriber: Subscriber = { deliver, onPause, tasks: new Set(), instances: new Set() }
      const hasRoom = (): boolean => subscriber.tasks.size + subscriber.instances.size < maxSubscriptions
      const addTo = (index: Index, own: Set<string>, id: string): boolean => {
        if (own.has(id)) return true
        if (!hasRoom()) return false
        own.add(id)
        const all = index.get(id)
        if (all === undefined) index.set(id, new Set([subscriber]))
        else all.add(subscriber)
        return true
      }
      const removeFrom = (index: Index, own: Set<string>, id: string): void => {
        own.delete(id)
        const all = index.get(id)
        all?.delete(subscriber)
        if (all?.size === 0) index.delete(id)
      }
      return {
        get hasRoom() {
          return hasRoom()
        },
        addTask: (taskId) => addTo(byTask, subscriber.tasks, taskId),
        // In a cluster, the end of a task can arrive in two ways. In one process it cannot.
        hasSeen: () => false,
        addInstance: (instanceId) => addTo(byInstance, subscriber.instances, instanceId),
        removeTask: (taskId) => removeFrom(byTask, subscriber.tasks, taskId),
        removeInstance: (instanceId) => removeFrom(byInstance, subscriber.instances, instanceId),
        leave: () => {
          for (const taskId of [...subscriber.tasks]) removeFrom(byTask, subscriber.tasks, taskId)
          for (const instanceId of [...subscriber.instances]) removeFrom(byInstance, subscriber.instances, instanceId)
        },
      }
    },
    get size() {
      return byTask.size + byInstance.size
    },
    dispose: () => {
      stop()
      byTask.clear()
      byInstance.clear()
    },
  }
}
