/** Waits until an owner has no active or undelivered task, and warns if that may never happen. */
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../../clock.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from '../registry.js'

/** How long results may be owed without a receiver before a warning, in ms. Until then the host may be about to fetch them. */
const PATIENCE_MS = 1000

/**
 * Resolves when no task of the owner (or of any owner, if undefined) is queued, running, owed or leased. Also resolves when the registry is disposed.
 */
export function waitUntilIdle(registry: TaskRegistry, owner: string | undefined): Promise<void> {
  const { ledger } = registry
  const isIdle = (): boolean => registry.isDisposed || ledger.outstanding(owner) === 0
  if (isIdle()) return Promise.resolve()
  return new Promise((resolve) => {
    let timer: LongTimer | undefined
    let isReported = false
    const report = (): void => {
      isReported = true
      for (const forgotten of forgottenOwners(registry, owner)) {
        const message =
          `onIdle may never resolve: ${ledger.countOf('owed', forgotten)} result(s) are owed to ${forgotten}, and no subscriber delivers them. ` +
          'Subscribe an auto-trigger, use beforeTurn or withTurn, or wait for the tasks.'
        registry.report(new Error(message), { source: 'idle', owner: forgotten })
      }
    }
    const look = (): void => {
      clearLongTimeout(registry.clock, timer)
      timer = undefined
      if (isIdle()) {
        subscription.unsubscribe()
        resolve()
      } else if (!isReported && forgottenOwners(registry, owner).length > 0) {
        timer = setLongTimeout(registry.clock, report, PATIENCE_MS, { name: 'warning of onIdle', kind: 'deadline' })
      }
    }
    const subscription = registry.drained$.subscribe({
      next: look,
      complete: () => {
        clearLongTimeout(registry.clock, timer)
        resolve()
      },
    })
    look()
  })
}

/**
 * Returns the owners whose results nobody receives. Returns an empty array while a task runs or a message is in flight, because the wait is not stuck
 * yet.
 */
function forgottenOwners(registry: TaskRegistry, owner: string | undefined): string[] {
  const { ledger } = registry
  const subscribers = registry.use(pushSubscribers)
  if (ledger.outstanding(owner) > ledger.countOf('owed', owner)) return []
  return [...ledger.countsByOwner('owed').keys()].filter(
    (name) => (owner === undefined || name === owner) && !subscribers.has(name),
  )
}
