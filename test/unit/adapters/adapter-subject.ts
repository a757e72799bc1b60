/** What the shared suite needs of an adapter: its tools, offered to the SDK's own test model and called by its own loop. */
import type { NeutralTools } from '../../../src/adapters/neutral-tools.js'

/** A call that the model makes. */
export interface ModelCall {
  readonly id: string
  readonly name: string
  /** As text: what the model wrote, JSON or not. */
  readonly args: Record<string, unknown> | string
}

/** What the model was shown of a tool. */
export interface OfferedTool {
  readonly name: string
  readonly description: string
  readonly parameters: unknown
}

/** What the model was shown of a call's result. */
export interface ShownResult {
  readonly id: string
  readonly text: string
  /** Whether the SDK marked it as failed; absent where the SDK has no such mark. */
  readonly isError?: boolean
}

/** One adapter under test. */
export interface AdapterSubject {
  /**
   * One turn in the SDK's loop: the model makes these calls in one step, is shown their results, and says `done`.
   * Rejects as the SDK does, for one when the signal aborts.
   */
  readonly turn: (
    tools: NeutralTools,
    calls: readonly ModelCall[],
    signal?: AbortSignal,
  ) => Promise<{
    readonly offered: readonly OfferedTool[]
    readonly shown: readonly ShownResult[]
    readonly end: string
  }>
  /** Whether a model can send arguments that are no JSON: LangChain's are parsed by the model's own integration. */
  readonly takesText: boolean
  /** Whether the SDK rejects the turn when its signal aborts. */
  readonly rejectsAborted: boolean
}
