/** Whether the history has an id. */
export interface PastIdCheck {
  /** Undefined until it is known. */
  readonly isInUse: boolean | undefined
  /** Resolves when it is known; never rejects. */
  readonly settled: Promise<void>
}
