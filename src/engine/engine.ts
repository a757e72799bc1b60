/**
 * The port through which all work starts. Nothing outside this folder starts, aborts or awaits a run itself, so that a
 * durable or a distributed engine can stand behind the same port.
 */

/** How a run ended, as its engine saw it. */
export type Outcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly reason: unknown }
  /** It was aborted before it started, and never started. */
  | { readonly type: 'skipped' }
  /** It was aborted and did not end within its grace; it may still be doing something. */
  | { readonly type: 'abandoned' }

/** One piece of work. */
export interface Work {
  /** Names the work in reports; need not be unique. */
  readonly id: string
  /** Does it. It should stop when `signal` aborts. */
  readonly run: (signal: AbortSignal) => unknown
  /** How long an aborted run may take to end, in ms, before it is abandoned. */
  readonly graceMs: number
  /** Told of what an abandoned run did later. */
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
