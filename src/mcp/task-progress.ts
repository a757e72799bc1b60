/** Progress notifications of MCP tasks of 2025-11-25. The progress token of the call that started a task stays valid until the task has ended. */
import type { LowLevelServer } from './low-level-server.js'
import type { McpApp } from './mcp-app.js'
import type { ProgressReport } from './progress.js'
import { relatedTo } from './tasks-2025.js'

export interface TaskProgress {
  /** Continues the report of the call that became a task, with the reports and the output of the task, until the task has ended. */
  follow(taskId: string, report: ProgressReport): void
  /** Stops all notifications. Called when the client is gone. */
  close(): void
}

export function createTaskProgress(server: LowLevelServer, app: McpApp, owner: string): TaskProgress {
  const stops = new Set<() => void>()
  return {
    follow: (taskId, report) => {
      const { onUpdate } = report
      // The client wants no notifications.
      if (onUpdate === undefined) return
      report.sendWith((params) => {
        // The call was already answered, so the notification is not part of it. Sending fails when the client has just disconnected.
        server
          .notification({ method: 'notifications/progress', params: { ...params, _meta: relatedTo(taskId) } })
          .catch(() => undefined)
      })
      report.follow(taskId)
      const output = app.backend.manager.output$(taskId).subscribe(onUpdate)
      const ended = new AbortController()
      const stop = (): void => {
        report.stop()
        output.unsubscribe()
        stops.delete(stop)
        ended.abort()
      }
      stops.add(stop)
      app.tasks.whenEnded(taskId, owner, ended.signal, stop)
    },
    close: () => {
      for (const stop of stops) stop()
    },
  }
}
