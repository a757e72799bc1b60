/** What a worker of the benchmark measures: one thing that can be done many times. */

/** How long something took, as the subject saw it itself. */
export interface OwnTiming {
  readonly ns: number
}

export interface Subject {
  /**
   * Does it so many times. The whole call is timed, unless it says itself how long the part took that counts.
   */
  run(times: number): OwnTiming | Promise<OwnTiming | undefined> | undefined
  /** Before each run, not timed. */
  prepare?(times: number): void | Promise<void>
  /** Single durations in ms since the last call, where their distribution is of interest. */
  takeDurations?(): number[]
  close?(): void | Promise<void>
}

/** Makes a subject. A module of `subjects/` exports functions of this type. */
export type CreateSubject<Params = unknown> = (params: Params) => Subject | Promise<Subject>

/** Which function of which module makes a subject, and with what. */
export interface SubjectSpec {
  readonly module: string
  readonly create: string
  readonly params?: unknown
}
