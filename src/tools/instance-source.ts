/** The instances that the tools use. This is an interface, because the MCP server and clusters have different instances. */
import type { InstanceSummary } from '../protocol/rest.js'

export type InstanceTool = NonNullable<InstanceSummary['tools']>[number]

export interface ListedInstance {
  readonly id: string
  /** The state in one word, such as `connected`. */
  readonly state: string
  /** Whether a person has paused the instance. Its tasks do not start until a person resumes it. */
  readonly isPaused?: true
  /** Why the instance could not be connected, or was disconnected. */
  readonly error?: string
  /** Lists the tools of the instance; undefined when the instance is not connected. */
  readonly listTools?: (() => Promise<readonly InstanceTool[]>) | undefined
}

export interface InstanceSource {
  /** The text to show when there are no instances. */
  readonly none: string
  /**
   * Waits until the instance has connected or failed; without an id, until one instance has connected or all have failed. Resolves with the reason why
   * no instance is connected. Never rejects.
   */
  ready(id?: string): Promise<string | undefined>
  /** Resolves when all instances have connected or failed, or after a short time. Never rejects. */
  settle(): Promise<void>
  list(): Promise<readonly ListedInstance[]>
}
