/** Where the tasks of a server run: in this process, or in the cluster that the server belongs to. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../system/clock.js'
import type { TaskManager } from '../../command-tasks/task-manager.js'
import type { Log } from '../http/log.js'
import type { InstanceManager } from '../../command-tasks/instances/instance-manager.js'
import type { SharedWorkers } from '../../command-tasks/instances/worker-socket.js'
import type { RegisterRequest, RegisterResponse } from '../../protocol/instance-messages.js'
import type { ServerConfig } from '../../protocol/server-config.js'
import { createEventLog } from './event-log.js'
import type { Eventually } from './eventually.js'
import { createHub, eventsOf, type Hub } from './hub.js'
import { createInstanceList, type InstanceList } from './instance-list.js'
import { drainTasks } from './shutdown.js'
import { createTaskService, type TaskService } from './task-service.js'
import { createWorkerStore } from './worker-store.js'

export interface BackendParts {
  readonly taskManager: TaskManager
  readonly instances: InstanceManager
  readonly config: ServerConfig
  readonly clock: Clock
  readonly log: Log
  readonly isDraining: () => boolean
}

export interface WorkerRegistration {
  readonly websocketUrl: string
  readonly isBrowser: boolean
}

export interface TaskBackend {
  readonly service: TaskService
  readonly hub: Hub
  readonly instances: InstanceList
  /**
   * Registers a worker.
   * @throws AgentTasksError for an id that is in use
   * @throws AgentTasksError `TOO_MANY_REGISTRATIONS`
   * @throws StoreError when the registration cannot be stored
   */
  register(request: RegisterRequest, worker: WorkerRegistration): Eventually<RegisterResponse>
  /** Default: every worker is registered in this process. */
  readonly sharedWorkers?: SharedWorkers | undefined
  /** The address that clients and workers receive. Default: the address of this server. */
  readonly publicUrl?: string | undefined
  /** Allows the workers of an earlier process to connect again. Called before the server listens. */
  restore(): void
  /** Resolves when no task runs in this process. Without a store, tasks that still run after `drainMs` are cancelled. */
  drain(drainMs: number): Promise<void>
  /** Closes the backend. Called last when the server closes. */
  close(): Promise<void>
}

/** A cluster: several servers behind one address (`agent-tasks/bullmq`). */
export interface TaskCluster {
  /** @internal Makes the server a node of the cluster. Its tasks are then the tasks of the cluster. */
  join(parts: BackendParts): Promise<TaskBackend>
}

export function createLocalBackend(
  { taskManager, instances, config, clock, isDraining }: BackendParts,
  hasStore: boolean,
): TaskBackend {
  const events = createEventLog({
    clock,
    isKnown: (taskId) => taskManager.placeOf(taskId) !== undefined,
    isContinued: (taskId) => taskManager.isContinued(taskId),
    ...(hasStore && { life: randomBytes(6).toString('hex') }),
  })
  const hub = createHub(eventsOf(taskManager, events))
  const { enabled: isEnabled, abortGraceMs: cancelGraceMs, instanceGraceMs: connectTimeoutMs } = config.tasks
  const workers = createWorkerStore(taskManager, instances)
  return {
    hub,
    service: createTaskService({ tasks: taskManager, events, isEnabled, isDraining }),
    instances: createInstanceList({ clock, instances, tasks: taskManager }),
    register: (request, worker) => workers.register(request, { clock, cancelGraceMs, ...worker }),
    restore: () => workers.restore({ clock, cancelGraceMs, connectTimeoutMs }),
    drain: (drainMs) => drainTasks(taskManager, clock, drainMs),
    close: () => {
      hub.dispose()
      events.dispose()
      return Promise.resolve()
    },
  }
}
