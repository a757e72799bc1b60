/** Something that a person asks the server to do: whether it is under way, and what went wrong. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { defined } from '../../defined.js'
import { ApiError } from './api.js'

export interface ActionState {
  readonly isBusy: boolean
  readonly error?: string
  /** The path of what is wrong in the request. */
  readonly field?: string
}

export interface Action {
  readonly state: ReadonlySignal<ActionState>
  /** Does nothing while it is under way. Returns whether it was done. */
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
