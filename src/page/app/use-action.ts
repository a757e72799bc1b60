/**
 * A request that a person triggers, with its progress and its error. While the request runs, its button should be `aria-disabled`, because a button that
 * is `disabled` loses the focus.
 */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { omitUndefined } from '../../data/omit-undefined.js'
import { ApiError } from './api.js'

export interface ActionState {
  readonly isBusy: boolean
  readonly error?: string
  /** The path of the wrong field in the request. */
  readonly field?: string
}

export interface Action {
  readonly state: ReadonlySignal<ActionState>
  /** Runs a request, unless one is running. Returns whether the request succeeded. */
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
        state.value = { isBusy: false, error: words, ...omitUndefined({ field }) }
        return false
      }
    },
  }
}
