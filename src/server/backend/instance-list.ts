/** The instances and their tools, for `GET /instances`. */
import { withTimeLimit, type Clock } from '../../system/clock.js'
import type { TaskManager } from '../../command-tasks/task-manager.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InstanceError } from '../../errors.js'
import type { Instance, ToolDescription } from '../../command-tasks/instances/instance.js'
import type { InstanceManager } from '../../command-tasks/instances/instance-manager.js'
import { jsonBytes } from '../../data/json-size.js'
import { toPlainData } from '../../data/plain-data.js'
import type { InstanceSummary } from '../../protocol/rest.js'
import { preview } from '../../data/preview.js'

export interface InstanceListOptions {
  readonly clock: Clock
  readonly instances: InstanceManager
  readonly tasks: TaskManager
}

/** How long an instance may take to list its tools, in ms. */
const LIST_MS = 2000
/** The maximum size of all tools in one answer, in bytes of JSON. When it is reached, the remaining instances are listed without tools. */
const MAX_TOOLS_BYTES = 16 * 1024 * 1024

export interface InstanceList {
  read(): Promise<InstanceSummary[]>
  /**
   * Pauses or resumes an instance, and resolves when the change is stored. Undefined if instances cannot be paused.
   * @throws AgentTasksError for an unknown instance
   * @throws StoreError when the change cannot be stored
   */
  readonly setPaused?: (instanceId: string, isPaused: boolean) => Promise<void>
}

export function createInstanceList({ clock, instances, tasks }: InstanceListOptions): InstanceList {
  /** The pending requests for lists of tools. An instance has at most one, even if several clients ask. */
  const asked = new Map<Instance, Promise<readonly ToolDescription[] | undefined>>()

  const ask = (instance: Instance): Promise<readonly ToolDescription[] | undefined> => {
    const known = asked.get(instance)
    if (known !== undefined) return known
    const answer = (async () => instance.listTools())().then(
      // Serializing fails if a schema is nested too deeply.
      (tools) => toPlainData(tools) as readonly ToolDescription[],
      () => undefined,
    )
    asked.set(instance, answer)
    void answer.finally(() => asked.delete(instance))
    return answer
  }

  /** Lists the tools of an instance; undefined if the instance does not answer in time. The list of instances does not fail because of it. */
  const toolsOf = (instance: Instance): Promise<readonly ToolDescription[] | undefined> =>
    withTimeLimit(ask(instance), { clock, ms: LIST_MS, late: () => undefined })

  return {
    setPaused: async (instanceId, isPaused) => {
      if (isPaused) tasks.pauseInstance(instanceId)
      else if (!tasks.resumeInstance(instanceId) && instances.get(instanceId) === undefined) {
        throw new InstanceError('INSTANCE_UNKNOWN', instanceId, `Instance not found: ${preview(instanceId)}`)
      }
      await tasks.stored()
    },
    read: async () => {
      const entries = instances.list()
      const offered = await Promise.all(
        entries.map(({ isConnected, instance }) => (isConnected ? toolsOf(instance) : Promise.resolve(undefined))),
      )
      const depths = tasks.laneDepths
      let room = MAX_TOOLS_BYTES
      return entries.map((entry, index) => {
        const { id, kind, isConnected, connectedAt, lastActivity } = entry
        const described = offered[index]
        const bytes = jsonBytes(described, room)
        const tools = bytes <= room ? described : undefined
        if (tools !== undefined) room -= bytes
        const { port, userAgent } = entry.instance.peer ?? {}
        const summary = {
          id,
          kind,
          isConnected,
          queued: depths.get(id) ?? 0,
          ...omitUndefined({ connectedAt, lastActivity, pausedSince: tasks.pausedInstances.get(id), port, userAgent }),
        }
        return tools === undefined ? summary : { ...summary, tools: tools as NonNullable<InstanceSummary['tools']> }
      })
    },
  }
}
