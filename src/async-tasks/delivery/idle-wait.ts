/** Waits until an owner has no task that is queued, runs or is owed, and says when that may never be. */
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../../clock.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from '../registry.js'

/** How long results may be owed with nobody to deliver them to before that is reported, in ms: a host may be about to ask for them. */
const PATIENCE_MS = 1000

/** Resolves when no task of the owner (of any owner) is queued, runs, is owed or is leased, or the registry is disposed. */
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
          `onIdle may never resolve: ${ledger.countOf('owed', forgotten)} result(s) are owed to ${forgotten}, and nothing delivers them. ` +
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

/** The owners to whom results are owed that nothing delivers; none while something runs or is in a message. */
function forgottenOwners(registry: TaskRegistry, owner: string | undefined): string[] {
  const { ledger } = registry
  const subscribers = registry.use(pushSubscribers)
  if (ledger.outstanding(owner) > ledger.countOf('owed', owner)) return []
  return [...ledger.countsByOwner('owed').keys()].filter(
    (name) => (owner === undefined || name === owner) && !subscribers.has(name),
  )
}
