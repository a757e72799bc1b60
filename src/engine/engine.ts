/**
 * The interface through which all work starts. Only this folder starts, aborts or awaits runs, so that a durable or distributed engine can be used
 * instead.
 */

/** How a run ended. */
export type Outcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly reason: unknown }
  /** Aborted before it started. */
  | { readonly type: 'skipped' }
  /** Aborted, and did not end within its grace period. It may still be running. */
  | { readonly type: 'abandoned' }

/** Passed to the work that an engine runs. */
export interface WorkContext {
  /** Aborts when the work should stop. An engine may create it on first read. */
  readonly signal: AbortSignal
  /** Whether `signal` has aborted, without creating it. Default: read the signal. */
  readonly aborted?: boolean
}

/** Work for an engine. */
export interface Work {
  /** The name of the work in reports. Need not be unique. */
  readonly id: string
  /** Does the work. It should stop when `signal` aborts. */
  readonly run: (context: WorkContext) => unknown
  /** How long an aborted run may take to end before it is abandoned, in ms. */
  readonly graceMs: number
  /** Called with the outcome if an abandoned run ends later. */
  readonly onLate?: (outcome: Outcome) => void
}

/** Started work. */
export interface Run {
  /** Resolves once, when the work has ended or was abandoned. Never rejects. */
  readonly settled: Promise<Outcome>
  /** Asks the work to stop. Further calls have no effect. */
  abort(reason?: unknown): void
}

/** Starts work. */
export interface Engine {
  /** Accepts work. It begins in a later microtask, or never if it is aborted before. */
  start(work: Work): Run
}
