/** Loads the details of a task. Loads them again when the task has changed. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { PageTask, PageTaskDetail } from '../../wire.js'
import { encoded } from '../addresses.js'
import { ApiError } from '../api.js'
import { after } from '../browser-clock.js'
import { usePage } from '../page-state.js'

export interface DetailState {
  readonly key: string
  readonly detail?: PageTaskDetail
  readonly error?: string
  readonly isUnknown?: boolean
}

/** The minimum time between two requests, in ms. */
const PAUSE_MS = 300

export function pathOf(key: string): string {
  return `/api/tasks/${encoded(key)}`
}

/** @param task the task in the latest event of the stream. The details are loaded again when its `seq` changes */
export function useTaskDetail(key: string, task: PageTask | undefined): ReadonlySignal<DetailState> {
  const { api, connection } = usePage()
  const shown = useSignal<DetailState>({ key })
  const isLive = connection.value.state === 'live'
  const isOther = shown.peek().key !== key
  if (isOther) shown.value = { key }
  useEffect(() => {
    if (!isLive) return undefined
    const abort = new AbortController()
    const stopTimer = after(shown.peek().detail ? PAUSE_MS : 0, () => {
      api
        .get<PageTaskDetail>(pathOf(key), abort.signal)
        .then((detail) => (shown.value = { key, detail }))
        .catch((error: unknown) => {
          if (abort.signal.aborted) return
          const isUnknown = error instanceof ApiError && error.status === 404
          shown.value = { ...shown.peek(), isUnknown, error: error instanceof Error ? error.message : String(error) }
        })
    })
    return () => {
      stopTimer()
      abort.abort()
    }
  }, [key, task?.seq, isLive, api])
  return shown
}
