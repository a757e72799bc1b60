/** The state that all connections of one MCP server share: the backend, the tools, the MCP tasks, the confirmations of answers, and the forms. */
import type { Backend } from './backend.js'
import { Confirmations } from './confirmations.js'
import { Elicitations } from './elicitations.js'
import { createMcpTasks, type McpTasks } from './mcp-tasks.js'
import type { McpTool } from './mcp-tool.js'
import { createTaskHandles } from './task-handles.js'
import { taskResult } from './task-result.js'
import { createTaskTools } from './task-tools.js'
import type { FindProject } from './working-directory.js'

export interface McpApp {
  readonly backend: Backend
  readonly tasks: McpTasks
  readonly confirmations: Confirmations
  readonly elicitations: Elicitations
  readonly createTools: (owner: string, findProject?: FindProject) => readonly McpTool[]
  /** Stops every task and every program, as `Backend.close` does. */
  close(): Promise<void>
}

/** @param createTools creates the tools of one client; default: the tools of this package */
export function createMcpApp(
  backend: Backend,
  createTools: McpApp['createTools'] = (owner, findProject) => createTaskTools(backend, owner, findProject),
): McpApp {
  const confirmations = new Confirmations(backend.manager)
  const elicitations = new Elicitations(backend.manager)
  const handles = createTaskHandles({
    backend,
    confirmations,
    toEarlierResult: (record) => taskResult(backend, record),
  })
  return {
    backend,
    confirmations,
    elicitations,
    createTools,
    tasks: createMcpTasks(handles, backend.manager, elicitations),
    close: async () => {
      handles.close()
      await backend.close()
    },
  }
}
