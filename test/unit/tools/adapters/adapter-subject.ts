/** An adapter as the shared suite tests it: with the SDK's own test model and loop. */
import type { AdapterOptions, NeutralTools } from '../../../../src/tools/adapters/neutral-tools.js'

/** A tool call of the model. */
export interface ModelCall {
  readonly id: string
  readonly name: string
  /** The arguments as text, valid JSON or not. */
  readonly args: Record<string, unknown> | string
}

/** A tool as the model sees it. */
export interface OfferedTool {
  readonly name: string
  readonly description: string
  readonly parameters: unknown
}

/** A result as the model sees it. */
export interface ShownResult {
  readonly id: string
  readonly text: string
  /** Whether the SDK marked it as failed; undefined when the SDK has no such mark. */
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
    options?: AdapterOptions,
  ) => Promise<{
    readonly offered: readonly OfferedTool[]
    readonly shown: readonly ShownResult[]
    readonly end: string
  }>
  /** Whether a model can send arguments that are not JSON: LangChain's model integrations parse them. */
  readonly takesText: boolean
  /** Whether the SDK rejects the turn when its signal aborts. */
  readonly rejectsAborted: boolean
}
