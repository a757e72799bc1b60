/** The tasks of a cluster as a host sees them, through a task manager in this process. */
import { vi } from 'vitest'
import type { ClusterTasks } from '../../src/command-tasks/cluster-tasks.js'
import type { TaskManager } from '../../src/command-tasks/task-manager.js'
import type { TaskProgressMessage } from '../../src/protocol/command-tasks.js'
import type { InstanceSummary } from '../../src/protocol/rest.js'
import type { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'

export function fakeCluster(manager: TaskManager, instances: InstanceManager) {
  const cancelled: string[] = []
  const reported: TaskProgressMessage[] = []
  manager.on('progress', (message) => reported.push(message))
  const submitTask = vi.fn((message: Parameters<TaskManager['submitTask']>[0]) =>
    Promise.resolve(manager.submitTask(message)),
  )
  const getTask = vi.fn((taskId: string) => Promise.resolve(manager.getTask(taskId)))
  const listInstances = vi.fn(() =>
    Promise.resolve<InstanceSummary[]>(
      instances.list().map(({ id, isConnected }) => ({ id, kind: 'local', isConnected, queued: 0 })),
    ),
  )
  const tasks: ClusterTasks = {
    submitTask,
    getTask,
    listInstances,
    cancelTask: (taskId) => {
      cancelled.push(taskId)
      return Promise.resolve(manager.cancelTask(taskId))
    },
    followTask: (taskId, { onProgress, signal }) =>
      new Promise((resolve, reject) => {
        const task = manager.getTask(taskId)
        for (const message of reported) if (message.taskId === taskId) onProgress(message)
        if (task === undefined || task.completedAt !== undefined) {
          resolve(task)
          return
        }
        manager.on('progress', (message) => {
          if (message.taskId === taskId && !signal.aborted) onProgress(message)
        })
        manager.on('complete', (message) => {
          if (message.taskId === taskId) resolve(manager.getTask(taskId))
        })
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
    listTasks: () => manager.listTasks(),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
  return { tasks, cancelled, submitTask, getTask, listInstances }
}
