/** Reasons for refusing an action that several actions share. */
export const DISPOSED = 'Its host has stopped: the manager was disposed. Start the host again.'
export const NOT_IN_HISTORY = 'The page, its manager and the history of its store do not have this task.'
