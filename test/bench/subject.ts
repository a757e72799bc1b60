/** What a worker of the benchmark measures: one operation that can be repeated. */

export interface Subject {
  /**
   * Repeats the operation. The whole call is timed. A subject that measures something else, or only a part of the call, returns it: one
   * number for one operation, in the unit of its figure.
   */
  run(times: number): number | undefined | Promise<number | undefined>
  /** Runs before each round and is not timed. */
  prepare?(times: number): void | Promise<void>
  /** The durations of single operations since the last call, in ms. */
  takeDurations?(): number[]
  /** What else it counted in the last call of `run`, by name: of one operation, or as it is. */
  takeCounts?(): Readonly<Record<string, number>>
  close?(): void | Promise<void>
}

/** Creates a subject. Every module in `subjects/` exports functions of this type. @param checkout where the package was built */
export type CreateSubject<Params = unknown> = (params: Params, checkout: string) => Subject | Promise<Subject>

/** Names the function that creates a subject. */
export interface SubjectSpec {
  readonly module: string
  readonly create: string
  readonly params?: unknown
  /** Every round is the first operation of a new process, with nothing warmed up: for heaps and imports. */
  readonly isFresh?: boolean
}

/** A subject, and the checkout whose build it uses. */
export interface BuiltSubjectSpec extends SubjectSpec {
  readonly checkout: string
}

/** One timed round. Times are of one operation. */
export interface Round {
  /** Processor time of the whole process, garbage collection included. */
  readonly cpuNs: number
  readonly wallNs: number
  /** What the subject measured itself. */
  readonly own?: number
  readonly durations: readonly number[]
  readonly counts: Readonly<Record<string, number>>
}
