/** Planted faults of what MCP clients and operators see. */
import { isTerminal } from '../../machines/task-entry.js'
import type { AlterHandles } from './mcp-tasks.property.js'
import type { AlterTelemetry } from './traces.property.js'

interface Fault {
  readonly name: string
  readonly invariant: 'F12'
  readonly description: string
}

export const mcpTaskFaults: readonly (Fault & { readonly alter: AlterHandles })[] = [
  {
    name: 'foreign-task-answered',
    invariant: 'F12',
    description: 'a client that names a task of another owner gets it',
    alter: (handles, manager) => ({
      ...handles,
      find: (taskId) => handles.find(taskId, manager.getTask(taskId)?.owner ?? ''),
    }),
  },
  {
    name: 'foreign-tasks-listed',
    invariant: 'F12',
    description: 'a client is shown the tasks of all owners',
    alter: (handles) => ({
      ...handles,
      list: (_owner, after) => ['alice', 'bob'].flatMap((owner) => handles.list(owner, after)),
    }),
  },
  {
    name: 'end-answered-before-it-is-stored',
    invariant: 'F12',
    description: 'a task has ended for its client while the store does not know of it',
    alter: (handles, manager) => ({
      ...handles,
      find: (taskId, owner) => {
        const handle = handles.find(taskId, owner)
        const record = manager.getTask(taskId)
        if (record === undefined || !isTerminal(record)) return handle
        const outcome = record.status === 'cancelled' ? 'cancelled' : 'result'
        const end = {
          at: record.completedAt,
          statusMessage: undefined,
          outcome: { type: outcome, result: { content: [] } },
        }
        return { ...handle, end: end as never }
      },
    }),
  },
]

export const traceFaults: readonly (Fault & { readonly alter: AlterTelemetry })[] = [
  {
    name: 'trace-broken-in-the-lane',
    invariant: 'F12',
    description: 'a command begins a trace of its own',
    alter: (telemetry) => ({
      ...telemetry,
      start: (operation) => telemetry.start({ ...operation, parent: undefined }),
    }),
  },
  {
    name: 'trace-of-the-last-submission',
    invariant: 'F12',
    description: 'a command belongs to the trace of the submission before it starts',
    alter: (telemetry) => {
      let last: ReturnType<typeof telemetry.current>
      return {
        ...telemetry,
        current: () => (last = telemetry.current()),
        start: (operation) => telemetry.start({ ...operation, parent: last }),
      }
    },
  },
]
