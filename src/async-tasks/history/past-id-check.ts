/** A check whether the history contains an id. */
export interface PastIdCheck {
  /** Undefined until the check has finished. */
  readonly isInUse: boolean | undefined
  /** Resolves when the check has finished. Never rejects. */
  readonly settled: Promise<void>
}
