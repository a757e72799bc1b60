/**
 * Finds labels for the timers of deliveries, for a clock that shows its timers, such as that of the race kit. XState calls `setTimeout` without
 * saying what the timer is for. But before it sets timers, it reports one action for each of them, with the same delay and in the same order. So a
 * timer gets the label of the first reported action that has its delay.
 */
import type { InspectionEvent } from 'xstate'
import type { TimerLabel } from '../../system/clock.js'

export class DeliveryTimerLabels {
  /** The reported actions whose timers XState has not set yet. */
  #raises: { readonly actorId: string; readonly params: RaiseParams }[] = []

  note({ type, actorRef, ...event }: InspectionEvent): void {
    if (type !== '@xstate.action' || !('action' in event) || event.action.type !== 'xstate.raise') return
    const params = event.action.params as RaiseParams
    if (params.delay !== undefined) {
      this.#raises.push({ actorId: (actorRef as typeof actorRef & { readonly id: string }).id, params })
    }
  }

  /** Returns the label for the timer that XState is setting. */
  take(ms: number): TimerLabel | undefined {
    const at = this.#raises.findIndex(({ params }) => params.delay === ms)
    // Earlier actions are dropped too. They belong to actors that have stopped, and XState sets no timers for these.
    const [raise] = at === -1 ? [] : this.#raises.splice(0, at + 1).slice(-1)
    return raise && labelOf(raise.actorId, raise.params)
  }
}

interface RaiseParams {
  readonly event: { readonly type: string }
  readonly delay: number | undefined
}

function labelOf(actorId: string, { event }: RaiseParams): TimerLabel | undefined {
  const [actor, owner] = /^delivery\.(.*)$/su.exec(actorId) ?? []
  if (actor === undefined) return undefined
  if (event.type === 'delivery.expired') return { name: `time limit of the delivery to ${owner}`, kind: 'deadline' }
  if (event.type.startsWith('xstate.after.poll.')) return { name: `poll of ${owner}`, kind: 'poll' }
  if (event.type.startsWith('xstate.after.backOff.')) return { name: `retry of the delivery to ${owner}` }
  return { name: `delivery to ${owner}` }
}
