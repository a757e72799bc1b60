/** Stores the registrations of remote workers, so that a worker of an earlier process can connect again. */
import type { TaskManager } from '../../command-tasks/task-manager.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { AgentTasksError, InstanceError } from '../../errors.js'
import type { InstanceManager } from '../../command-tasks/instances/instance-manager.js'
import { digestOf, type WebSocketInstanceOptions } from '../../command-tasks/instances/websocket-instance.js'
import {
  findRegistration,
  registerWorker,
  restoreWorker,
  type RegistrationOptions,
} from '../../command-tasks/instances/worker-socket.js'
import { preview } from '../../data/preview.js'
import type { RegisterRequest, RegisterResponse } from '../../protocol/instance-messages.js'

export interface WorkerStore {
  /**
   * Registers a worker, or finds the registration that belongs to its secret. With a store, resolves when the registration is stored.
   * @throws AgentTasksError for an id that is in use, or that tasks of an earlier process wait for
   * @throws AgentTasksError `TOO_MANY_REGISTRATIONS`
   * @throws StoreError when the registration cannot be stored
   */
  register(request: RegisterRequest, options: RegistrationOptions): Promise<RegisterResponse>
  /** Allows the workers of an earlier process to connect again. Deletes registrations whose id is in use now. */
  restore(options: Pick<WebSocketInstanceOptions, 'clock' | 'connectTimeoutMs' | 'cancelGraceMs'>): void
}

export function createWorkerStore(tasks: TaskManager, instances: InstanceManager): WorkerStore {
  const { persistence } = tasks
  return {
    register: async (request, options) => {
      const { instanceId } = request
      const earlier = findRegistration(instances, request, options)
      if (earlier !== undefined) return earlier
      const waiting = instances.list().filter(({ kind, isConnected }) => kind === 'websocket' && !isConnected)
      if (waiting.length >= MAX_WAITING_WORKERS) {
        throw tooMany(`${waiting.length} registered workers have not connected`)
      }
      if (instanceId !== undefined && instances.get(instanceId) === undefined && tasks.isAwaited(instanceId)) {
        const message = `Instance id ${preview(instanceId)} is in use: tasks wait for the instance that had it before the server started.`
        throw new InstanceError('INSTANCE_ID_IN_USE', instanceId, message)
      }
      const answer = registerWorker(instances, request, options)
      if (persistence === undefined) return answer
      const { tools } = request
      const { isBrowser } = options
      const secretSha256 = digestOf(answer.secret).toString('hex')
      try {
        const row = { id: answer.instanceId, secretSha256, registration: omitUndefined({ tools, isBrowser }) }
        if (await persistence.addWorker(row)) return answer
        throw tooMany('The store has no room for another worker')
      } catch (error) {
        await instances.disconnect(answer.instanceId, 'Its registration could not be stored.')
        throw error
      }
    },
    restore: (options) => {
      for (const worker of persistence?.takeWorkers() ?? []) {
        if (instances.get(worker.id) === undefined) restoreWorker(instances, worker, options)
        else persistence?.removeWorker(worker.id)
      }
    },
  }
}

/** The maximum number of registrations of workers that have not connected. Such a registration expires after a while. */
export const MAX_WAITING_WORKERS = 1000

export const tooMany = (message: string): AgentTasksError => new AgentTasksError('TOO_MANY_REGISTRATIONS', message)
