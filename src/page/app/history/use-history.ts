/** Loads the results of a search page by page. Starts again when the search changes. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { omitUndefined } from '../../../data/omit-undefined.js'
import type { PageHistory, PastTaskRow } from '../../wire.js'
import { after } from '../browser-clock.js'
import { usePage } from '../page-state.js'

export interface HistoryState {
  readonly tasks: readonly PastTaskRow[]
  readonly next?: string
  readonly error?: string
  readonly isBusy: boolean
}

/** How long the page waits after a key press before it searches, in ms. */
const PAUSE_MS = 250

/** @param query the parameters of the search in the address */
export function useHistory(query: URLSearchParams): {
  readonly state: ReadonlySignal<HistoryState>
  readonly more: () => void
} {
  const { api, connection } = usePage()
  const state = useSignal<HistoryState>({ tasks: [], isBusy: true })
  const current = useRef<AbortController | undefined>(undefined)
  const isLive = connection.value.state === 'live'
  const search = query.toString()
  const ask = (before: readonly PastTaskRow[], place: string | undefined): void => {
    current.current?.abort()
    const abort = new AbortController()
    current.current = abort
    state.value = { ...state.peek(), isBusy: true }
    const asked = new URLSearchParams(search)
    if (place !== undefined) asked.set('before', place)
    api
      .get<PageHistory>(`/api/history?${asked.toString()}`, abort.signal)
      .then(({ tasks, next }) => {
        const known = new Set(before.map(({ key }) => key))
        const added = tasks.filter(({ key }) => !known.has(key))
        state.value = { tasks: [...before, ...added], isBusy: false, ...omitUndefined({ next }) }
      })
      .catch((error: unknown) => {
        if (abort.signal.aborted) return
        const words = error instanceof Error ? error.message : String(error)
        state.value = { ...state.peek(), isBusy: false, error: words }
      })
  }
  const isFirst = useRef(true)
  useEffect(() => {
    if (!isLive) return undefined
    const stopTimer = after(isFirst.current ? 0 : PAUSE_MS, () => ask([], undefined))
    isFirst.current = false
    return () => {
      stopTimer()
      current.current?.abort()
    }
  }, [search, isLive, api])
  return {
    state,
    more: () => {
      const { tasks, next } = state.peek()
      if (next !== undefined) ask(tasks, next)
    },
  }
}
