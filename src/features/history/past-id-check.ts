/** A check whether the history already contains a task with the id of a new one. */
export interface PastIdCheck {
  /** Whether it does. Undefined until the check has finished. */
  readonly isInUse: boolean | undefined
  /** Resolves when the check has finished. Never rejects. */
  readonly settled: Promise<void>
}
