/** The plan and the outcome of running a task again. */

/** The key of the new task, or the reason why there is none. */
export type Again = { readonly key: string } | { readonly error: string; readonly code: string }

/** A function that starts the new task, or the reason why the task cannot run again. */
export type PlanAgain = (() => Promise<Again>) | string
