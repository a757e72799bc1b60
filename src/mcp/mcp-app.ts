/**
 * The state that all connections of one MCP server share: the backend, the tools, the MCP tasks, the confirmations of answers, and the forms. The work
 * of a server over stdio begins with the first request that needs it, because clients also start servers only to check them.
 */
import { OwnerFeed } from '../async-tasks/owner-feed.js'
import { AsyncTaskReminderService } from '../features/delivery/reminder-service.js'
import type { Backend } from './backend.js'
import type { ClientIdentity } from './client-identity.js'
import { Confirmations } from './confirmations.js'
import { Elicitations } from './elicitations.js'
import { FOLLOW_UPS, type ResultArrival } from './follow-ups.js'
import { FormRounds } from './form-rounds.js'
import { createMcpTasks, type McpTasks } from './mcp-tasks.js'
import type { McpTool } from './mcp-tool.js'
import { resourceChanges, type ResourceChange } from './resources.js'
import { createTaskHandles } from './task-handles.js'
import { taskResult } from './task-result.js'
import { createTaskTools } from './task-tools.js'
import type { FindProject } from './working-directory.js'

/** What exists once the work of the backend has begun. */
interface Work {
  readonly tasks: McpTasks
  readonly confirmations: Confirmations
  readonly elicitations: Elicitations
  readonly forms: FormRounds
  readonly reminders: AsyncTaskReminderService
  /** The changes of tasks that clients see in resources. */
  readonly changes: OwnerFeed<ResourceChange>
  readonly close: () => void
}

export interface McpApp {
  readonly backend: Backend
  /** Which conversation the server serves. Undefined over HTTP. */
  readonly identity: ClientIdentity | undefined
  /** Reading it before the work has begun throws. */
  readonly work: Work
  /** The same as `work.tasks`. */
  readonly tasks: McpTasks
  readonly createTools: (owner: string, findProject?: FindProject, arrival?: ResultArrival) => readonly McpTool[]
  /**
   * Begins the work of the backend, unless it has begun. Resolves when the tasks of earlier processes are taken over.
   * @throws StoreError when the store cannot be opened; the next call tries again
   */
  begin(): Promise<void>
  /**
   * Calls `start` when the work begins, or immediately if it has begun.
   * @param start returns a function that undoes what it did
   * @returns a function that does this, or prevents the call of `start`
   */
  whenBegun(start: () => () => void): () => void
  close(): Promise<void>
}

/** @param createTools creates the tools of one client; default: the tools of this package */
export function createMcpApp(
  backend: Backend,
  createTools: McpApp['createTools'] = (owner, findProject, arrival) =>
    createTaskTools(backend, owner, findProject, arrival),
  identity?: ClientIdentity,
): McpApp {
  let begun: Work | undefined
  const waiting = new Set<() => void>()
  const begin = (): void => {
    const manager = backend.begin()
    if (begun !== undefined) return
    const confirmations = new Confirmations(manager)
    const elicitations = new Elicitations(manager)
    const forms = new FormRounds(manager)
    const handles = createTaskHandles({
      backend,
      confirmations,
      toEarlierResult: (record) => taskResult(backend, record),
    })
    const tasks = createMcpTasks(handles, manager, elicitations)
    const reminders = new AsyncTaskReminderService(manager, {
      maxMessageChars: backend.config.maxMessageChars,
      answerWith: FOLLOW_UPS.answer,
      readWith: FOLLOW_UPS.read,
    })
    const changes = new OwnerFeed(resourceChanges(backend))
    const close = (): void => {
      forms.close()
      handles.close()
    }
    begun = { tasks, confirmations, elicitations, forms, reminders, changes, close }
    for (const start of waiting) start()
    waiting.clear()
  }
  if (backend.hasBegun) begin()
  return {
    backend,
    identity,
    get work() {
      if (begun === undefined) throw new Error('The work of the server has not begun.')
      return begun
    },
    get tasks() {
      return this.work.tasks
    },
    createTools,
    begin: async () => {
      begin()
      await backend.manager.recovered
    },
    whenBegun: (start) => {
      if (begun !== undefined) return start()
      let stop: (() => void) | undefined
      const onBegin = (): void => void (stop = start())
      waiting.add(onBegin)
      return () => {
        waiting.delete(onBegin)
        stop?.()
      }
    },
    close: async () => {
      begun?.close()
      await backend.close()
    },
  }
}
