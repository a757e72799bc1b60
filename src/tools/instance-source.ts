/** The instances that the tools use: a port, which the MCP server implements. */
import type { InstanceSummary } from '../protocol/rest.js'

export type InstanceTool = NonNullable<InstanceSummary['tools']>[number]

export interface ListedInstance {
  readonly id: string
  /** The state, in one word. */
  readonly state: string
  /** Its tasks do not start until a person resumes it. */
  readonly isPaused?: true
  /** Why it failed. */
  readonly error?: string
  /** Undefined when it is not connected. */
  readonly listTools?: (() => Promise<readonly InstanceTool[]>) | undefined
}

/** The instances that the tools use. */
export interface InstanceSource {
  /** The text for an empty list. */
  readonly none: string
  /** Waits until the instance, or without an id any instance, has connected or failed. Resolves with why no instance is connected. Never rejects. */
  ready(id?: string): Promise<string | undefined>
  /** Resolves when all have connected or failed, or after a short time. Never rejects. */
  settle(): Promise<void>
  list(): Promise<readonly ListedInstance[]>
}
