/**
 * The labels of the timers of deliveries, for a clock that is observed. XState sets them at the end of a transition, in the order of the
 * actions that it has reported, and passes no label on to the clock.
 */
import type { InspectionEvent } from 'xstate'
import type { TimerLabel } from '../../clock.js'

export class DeliveryTimerLabels {
  /** The actions that have yet to set their timers. */
  #raises: { readonly actorId: string; readonly params: RaiseParams }[] = []

  note({ type, actorRef, ...event }: InspectionEvent): void {
    if (type !== '@xstate.action' || !('action' in event) || event.action.type !== 'xstate.raise') return
    const params = event.action.params as RaiseParams
    if (params.delay !== undefined) {
      this.#raises.push({ actorId: (actorRef as typeof actorRef & { readonly id: string }).id, params })
    }
  }

  /** The label of the timer that is set now, for so many ms. */
  take(ms: number): TimerLabel | undefined {
    const at = this.#raises.findIndex(({ params }) => params.delay === ms)
    // An actor that has stopped meanwhile sets none: what comes before is left over.
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
