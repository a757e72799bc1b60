/** The default owner of a task. */
export const DEFAULT_OWNER = 'main'
