/** The plan to run a task again, and its outcome. */

/** The key of the new task, or the reason why there is no new task. */
export type Again = { readonly key: string } | { readonly error: string; readonly code: string }

/** A function that starts the new task, or the reason why the task cannot run again. */
export type PlanAgain = (() => Promise<Again>) | string
