/** Tells clients that their tasks have changed: what happens within a short while is told once. */
import type { Observable } from 'rxjs'
import type { Clock } from '../clock.js'
import type { ResourceChange } from './resources.js'

/** How long changes are gathered, in ms. */
const GATHER_MS = 100

export interface ResourceFeed {
  /** Stops telling. */
  close(): void
}

export interface ResourceListener {
  readonly onUpdate: (uri: string) => void
  readonly onListChange: () => void
}

/** @param isWanted which changes are told */
export function feedResources(
  changes: Observable<ResourceChange>,
  isWanted: (change: ResourceChange) => boolean,
  listener: ResourceListener,
  clock: Clock,
): ResourceFeed {
  const updated = new Set<string>()
  let hasListChanged = false
  let timer: unknown
  const flush = (): void => {
    timer = undefined
    const uris = [...updated]
    updated.clear()
    if (hasListChanged) listener.onListChange()
    hasListChanged = false
    for (const uri of uris) listener.onUpdate(uri)
  }
  const subscription = changes.subscribe((change) => {
    if (!isWanted(change)) return
    if (change.isListChange) hasListChanged = true
    updated.add(change.uri)
    timer ??= clock.setTimeout(flush, GATHER_MS)
  })
  return {
    close: () => {
      subscription.unsubscribe()
      if (timer !== undefined) clock.clearTimeout(timer)
      timer = undefined
    },
  }
}
