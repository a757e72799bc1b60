/**
 * Who is told of what (S7): each subscriber gets each event once, however many of its subscriptions match, in order, and each event is
 * written once, however many get it.
 *
 * A subscription to a task ends with the task, one to an instance with its subscriber.
 */
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { EventLog, TaskEvent } from './event-log.js'

/** Gets events. It does not throw. */
export type Deliver = (event: TaskEvent) => void

/** The subscriptions of one subscriber. */
export interface Subscriptions {
  /** Whether one more is allowed. */
  readonly hasRoom: boolean
  /** False when there is no room; a subscription that is there already stays one. */
  addTask(taskId: string): boolean
  addInstance(instanceId: string): boolean
  removeTask(taskId: string): void
  removeInstance(instanceId: string): void
  /** Ends them all. */
  leave(): void
}

export interface Hub {
  join(deliver: Deliver, most: number): Subscriptions
  /** How many tasks and instances someone is subscribed to. */
  readonly size: number
  dispose(): void
}

interface Subscriber {
  readonly deliver: Deliver
  readonly tasks: Set<string>
  readonly instances: Set<string>
}

type Index = Map<string, Set<Subscriber>>

export function createHub(tasks: TaskManager, log: EventLog): Hub {
  const byTask: Index = new Map()
  const byInstance: Index = new Map()

  const tell = (message: TaskProgressMessage | TaskCompleteMessage): void => {
    const event = log.append(message)
    const ofTask = byTask.get(message.taskId)
    const ofInstance = byInstance.get(message.instanceId)
    if (ofTask !== undefined) for (const { deliver } of ofTask) deliver(event)
    if (ofInstance !== undefined) {
      for (const subscriber of ofInstance) if (ofTask?.has(subscriber) !== true) subscriber.deliver(event)
    }
    event.release()
    if (event.isComplete && ofTask !== undefined) {
      for (const subscriber of ofTask) subscriber.tasks.delete(message.taskId)
      byTask.delete(message.taskId)
    }
  }
  tasks.on('progress', tell).on('complete', tell)

  return {
    join: (deliver, most) => {
      const subscriber: Subscriber = { deliver, tasks: new Set(), instances: new Set() }
      const hasRoom = (): boolean => subscriber.tasks.size + subscriber.instances.size < most
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
      tasks.off('progress', tell).off('complete', tell)
      byTask.clear()
      byInstance.clear()
    },
  }
}
