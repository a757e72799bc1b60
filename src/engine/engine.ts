/**
 * The interface through which all work starts. Other folders never start, abort or await work themselves, so that a durable or distributed engine can
 * replace the default one.
 */

export type Outcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly reason: unknown }
  /** The run was aborted before it had started. */
  | { readonly type: 'skipped' }
  /** The run was aborted and did not end within its grace period. It may still be running. */
  | { readonly type: 'abandoned' }

export interface WorkContext {
  /** Aborts when the work should stop. An engine may create the signal when it is first read. */
  readonly signal: AbortSignal
  /** Whether `signal` has aborted. Reading this field does not create the signal. If it is undefined, read the signal. */
  readonly aborted?: boolean
}

/** Work that an engine can start. */
export interface Work {
  /** The id of the work in reports. Need not be unique. */
  readonly id: string
  /** Does the work. It should stop when `signal` aborts. */
  readonly run: (context: WorkContext) => unknown
  /** How long an aborted run may take to end before it is abandoned, in ms. */
  readonly graceMs: number
  /** Called with the outcome if an abandoned run ends after all. */
  readonly onLate?: (outcome: Outcome) => void
}

/** Work that an engine has started. */
export interface Run {
  /** Resolves once, when the work has ended or was abandoned. Never rejects. */
  readonly settled: Promise<Outcome>
  /** Asks the work to stop. Further calls have no effect. */
  abort(reason?: unknown): void
}

/** Starts work and reports how it ends. */
export interface Engine {
  /** Accepts work. The work begins in a later microtask. If it is aborted before that, it never begins. */
  start(work: Work): Run
}
