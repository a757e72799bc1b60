/**
 * Routes task events to subscribers (promise S7). A subscriber gets each event once and in order, even if several of its subscriptions match. Each
 * event is serialized once for all subscribers. A subscription to a task ends with the task, one to an instance with its subscriber.
 */
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { InstancePauseMessage, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** Called with each event. Must not throw. */
export type Deliver = (event: TaskEvent) => void

export interface Subscriptions {
  /** Whether the limit allows another subscription. */
  readonly hasRoom: boolean
  /**
   * Returns false when the limit is reached. Subscribing again to the same task is a no-op.
   * @param after the place of the last event that the subscriber has, as in `FollowedTask`
   * @param instanceId the instance of the task, if it is known
   */
  addTask(taskId: string, after: number, instanceId?: string): boolean
  addInstance(instanceId: string): boolean
  /** Returns whether the subscriber has received the last event of an ended task, and marks it as received. */
  hasSeen(taskId: string, seq: number): boolean
  removeTask(taskId: string): void
  removeInstance(instanceId: string): void
  /** Removes all subscriptions. */
  leave(): void
}

type OnPause = (message: InstancePauseMessage) => void

export interface Hub {
  /**
   * @param maxSubscriptions the maximum number of subscriptions of this subscriber
   * @param onPause called when an instance that it subscribes to is paused or resumed
   * @param onMissed called when events may have been missed and cannot be read again; the subscriber has to start over
   */
  join(deliver: Deliver, maxSubscriptions: number, onMissed?: () => void, onPause?: OnPause): Subscriptions
  /** The number of tasks and instances that have subscribers. */
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
  /** Calls `publish` with each event in order, and `onPause` when an instance is paused or resumed. Returns a function that stops it. */
  listen(publish: Deliver, onPause: OnPause): () => void
}

/** The events of this process' tasks, which the log also keeps. */
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
        // In one process, an end cannot arrive in two ways.
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
