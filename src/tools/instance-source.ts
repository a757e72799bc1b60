/** The instances that the tools use: a port, which the MCP server implements. */
import type { InstanceSummary } from '../protocol/rest.js'

export type InstanceTool = NonNullable<InstanceSummary['tools']>[number]

export interface ListedInstance {
  readonly id: string
  /** In one word. */
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
  /** What is said when there are none. */
  readonly none: string
  /** Resolves when an instance, or without an id any of them, has connected or failed: with why none has. Never rejects. */
  ready(id?: string): Promise<string | undefined>
  /** Resolves when all have connected or failed, or after a short time. Never rejects. */
  settle(): Promise<void>
  list(): Promise<readonly ListedInstance[]>
}
