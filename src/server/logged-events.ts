/** Writes the events of tasks, instances and requests to the log of a server. docs/server.md lists them. */
import type { IncomingMessage } from 'node:http'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { addressOf } from './http/access.js'
import type { InstanceManager } from '../command-tasks/instances/instance-manager.js'
import type { Fields, WriteEvent } from './event-lines.js'
import { whenThere } from './backend/eventually.js'
import { pathOf } from './http-entry.js'
import { whenAccepted, type TaskService } from './backend/task-service.js'

/** The logged fields of a request. Headers and the query are left out, because they may contain a token. */
export const requestFields = (request: IncomingMessage): Fields => ({
  address: addressOf(request),
  method: request.method,
  path: pathOf(request),
})

/** Logs the events from now on. Nothing unsubscribes, because the manager and the instances end together with the server. */
export function logTasksAndInstances(tasks: TaskManager, instances: InstanceManager, write: WriteEvent): void {
  instances.onConnect((instance) => {
    const { kind, instance: connected } = instances.get(instance) ?? {}
    write('info', 'instance connected', { instance, kind, address: connected?.peer?.address })
  })
  instances.onDisconnect((instance, reason) => write('info', 'instance disconnected', { instance, reason }))
  instances.onTakenOver((instance) => {
    const { peer } = instances.get(instance)?.instance ?? {}
    write('info', 'instance taken over', { instance, address: peer?.address })
  })
  tasks.on('complete', ({ taskId: task, instanceId: instance, status, error }) => {
    if (status === 'failed') {
      write('info', 'task failed', { task, instance, code: error.code, command: error.commandId, error: error.message })
    }
  })
}

export const logRefusals = (service: TaskService, write: WriteEvent): TaskService => ({
  ...service,
  submit: (message, idempotencyKey) =>
    whenThere(service.submit(message, idempotencyKey), (submission) => {
      void whenThere(whenAccepted(submission), (submitted) => {
        if (!('error' in submitted)) return
        const { code, error } = submitted
        write('info', 'refused task', { instance: message.instanceId, code, error })
      })
      return submission
    }),
})
