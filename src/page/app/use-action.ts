/**
 * A request that a person triggers: whether it is in progress, and its error. Its button is `aria-disabled` meanwhile, because a disabled button loses
 * the focus.
 */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { defined } from '../../defined.js'
import { ApiError } from './api.js'

export interface ActionState {
  readonly isBusy: boolean
  readonly error?: string
  /** The path of the invalid field in the request. */
  readonly field?: string
}

export interface Action {
  readonly state: ReadonlySignal<ActionState>
  /** Has no effect while a request is in progress. Returns whether it succeeded. */
  run(act: () => Promise<unknown>): Promise<boolean>
}

export function useAction(): Action {
  const state = useSignal<ActionState>({ isBusy: false })
  return {
    state,
    run: async (act) => {
      if (state.peek().isBusy) return false
      state.value = { isBusy: true }
      try {
        await act()
        state.value = { isBusy: false }
        return true
      } catch (error) {
        const field = error instanceof ApiError ? error.field : undefined
        const words = error instanceof Error ? error.message : String(error)
        state.value = { isBusy: false, error: words, ...defined({ field }) }
        return false
      }
    },
  }
}
