/** Loads the subagents of the host. Loads them again after each reconnection. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { PageSubagents } from '../../wire.js'
import { usePage } from '../page-state.js'

interface SubagentsState {
  readonly list?: PageSubagents
  readonly error?: string
}

export function useSubagents(): ReadonlySignal<SubagentsState> {
  const { api, connection } = usePage()
  const state = useSignal<SubagentsState>({})
  const isLive = connection.value.state === 'live'
  useEffect(() => {
    if (!isLive) return undefined
    const abort = new AbortController()
    api
      .get<PageSubagents>('/api/subagents', abort.signal)
      .then((list) => (state.value = { list }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return
        state.value = { ...state.peek(), error: error instanceof Error ? error.message : String(error) }
      })
    return () => abort.abort()
  }, [isLive, api])
  return state
}
