/**
 * The port through which all work starts. Nothing outside this folder starts, aborts or awaits a run itself, so that a
 * durable or a distributed engine can stand behind the same port.
 */

/** How a run ended, as reported by its engine. */
export type Outcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly reason: unknown }
  /** It was aborted before it started, and never started. */
  | { readonly type: 'skipped' }
  /** It was aborted and did not end within its grace period; it may still be running. */
  | { readonly type: 'abandoned' }

/** What an engine passes to the work that it runs. */
export interface WorkContext {
  /** Aborts when the work should stop. An engine may make it when it is first read. */
  readonly signal: AbortSignal
  /** Whether `signal` has aborted, without making it. Default: ask the signal. */
  readonly aborted?: boolean
}

/** One piece of work. */
export interface Work {
  /** Names the work in reports; need not be unique. */
  readonly id: string
  /** Does the work. It should stop when `signal` aborts. */
  readonly run: (context: WorkContext) => unknown
  /** How long an aborted run may take to end before it is abandoned, in ms. */
  readonly graceMs: number
  /** Called with the outcome of a run that was abandoned before. */
  readonly onLate?: (outcome: Outcome) => void
}

/** Work that was started. */
export interface Run {
  /** Resolves once, when the work has ended or was abandoned; never rejects. */
  readonly settled: Promise<Outcome>
  /** Asks the work to stop. Asking again does nothing. */
  abort(reason?: unknown): void
}

/** Starts work. */
export interface Engine {
  /** Accepts the work; it begins in a later microtask, and not at all if it is aborted before. */
  start(work: Work): Run
}
