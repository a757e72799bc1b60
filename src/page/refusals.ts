/** Reasons for a refusal that several files use. */
export const DISPOSED = 'The host of this task has stopped (the manager was disposed). Start the host again.'
export const NOT_IN_HISTORY = 'The page, its manager and the history of the store no longer have this task.'
