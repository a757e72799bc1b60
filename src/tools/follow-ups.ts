/** What a result tells the model to call next. A host that offers the same under other names says so. */

export interface FollowUps {
  /** How a task is cancelled, in words. */
  readonly cancel: string
  /** The tool that takes answers, and the parameters that say so. */
  readonly answer: { readonly tool: string; readonly params: Readonly<Record<string, unknown>> }
}

/** check_async_tasks does it all. */
export const CHECK_FOLLOW_UPS: FollowUps = {
  cancel: 'check_async_tasks with action "cancel"',
  answer: { tool: 'check_async_tasks', params: { action: 'answer' } },
}
