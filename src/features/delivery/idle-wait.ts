/** Waits until an owner has no active or undelivered task, and warns if that may never happen. */
import { currentTurn, type TurnMarker } from '../../isolation/current-turn.js'
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../../system/clock.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** How long results may be owed without a receiver before a warning, in ms. Until then the host may be about to fetch them. */
const PATIENCE_MS = 1000

/**
 * Resolves when no task of the owner (or of any owner, if undefined) is queued, running, owed or leased. Also resolves when the registry is
 * disposed, and when its store is lost. Inside a turn, results do not count that the turn itself has received.
 */
export function waitUntilIdle(registry: TaskRegistry, owner: string | undefined): Promise<void> {
  const { ledger, persistence } = registry
  const turn = currentTurn()
  const isIdle = (): boolean =>
    registry.isDisposed || persistence?.isLost === true || ledger.outstanding(owner) === heldBy(registry, turn, owner)
  if (isIdle()) return Promise.resolve()
  return new Promise((resolve) => {
    let timer: LongTimer | undefined
    let isReported = false
    const report = (): void => {
      for (const forgotten of forgottenOwners(registry, owner)) {
        isReported = true
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
        stopWatching?.()
        resolve()
      } else if (!isReported && mayBeStuck(registry, owner)) {
        timer = setLongTimeout(registry.clock, report, PATIENCE_MS, { name: 'warning of onIdle', kind: 'deadline' })
      }
    }
    const subscription = registry.drained$.subscribe({
      next: look,
      complete: () => {
        clearLongTimeout(registry.clock, timer)
        stopWatching?.()
        resolve()
      },
    })
    const stopWatching = persistence?.onLost(look)
    look()
  })
}

/** Returns how many results the turn itself holds in which the wait was begun. The turn ends after the wait. */
function heldBy({ ledger }: TaskRegistry, turn: TurnMarker | undefined, owner: string | undefined): number {
  if (turn === undefined || turn.isOver) return 0
  const held = turn.deliveryIds.flatMap((id) => [...(ledger.lease(id)?.entries ?? [])])
  return new Set(held.filter(({ record }) => owner === undefined || record.owner === owner)).size
}

/** Whether results are owed while no task runs or waits to start and no message is in flight. */
function mayBeStuck({ ledger }: TaskRegistry, owner: string | undefined): boolean {
  const owed = ledger.countOf('owed', owner)
  return owed > 0 && ledger.outstanding(owner) === owed
}

/** Returns the owners whose results nobody receives. */
function forgottenOwners(registry: TaskRegistry, owner: string | undefined): string[] {
  const subscribers = registry.use(pushSubscribers)
  const owners = owner === undefined ? [...registry.ledger.countsByOwner('owed').keys()] : [owner]
  return owners.filter((name) => !subscribers.has(name))
}
