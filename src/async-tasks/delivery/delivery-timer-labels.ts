/**
 * The labels of delivery timers, for an observed clock. XState does not pass labels to the clock. It sets timers at the end of a transition, in the
 * order of the actions that it has reported.
 */
import type { InspectionEvent } from 'xstate'
import type { TimerLabel } from '../../clock.js'

export class DeliveryTimerLabels {
  /** The actions whose timers are not set yet. */
  #raises: { readonly actorId: string; readonly params: RaiseParams }[] = []

  note({ type, actorRef, ...event }: InspectionEvent): void {
    if (type !== '@xstate.action' || !('action' in event) || event.action.type !== 'xstate.raise') return
    const params = event.action.params as RaiseParams
    if (params.delay !== undefined) {
      this.#raises.push({ actorId: (actorRef as typeof actorRef & { readonly id: string }).id, params })
    }
  }

  /** Returns the label for a timer that is set now. */
  take(ms: number): TimerLabel | undefined {
    const at = this.#raises.findIndex(({ params }) => params.delay === ms)
    // An actor that has stopped sets no timer, so earlier actions may be left over.
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
