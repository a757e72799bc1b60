/** What one agent has shown. */
import type { TestedAgent } from './agents.js'

export interface AgentRow {
  readonly agent: TestedAgent
  readonly version: string
  /** The cells, by the names of the cases. */
  readonly cells: Readonly<Record<string, string>>
}
