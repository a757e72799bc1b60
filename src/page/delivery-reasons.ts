/** Describes the state of the deliveries to an owner, and why its results still wait. */
import type { DeliveryState } from '../features/delivery/delivery-states.js'
import { preview } from '../data/preview.js'
import { sentText } from './texts.js'
import type { OwnerDelivery } from './wire.js'

export function stateOf(delivery: DeliveryState | undefined): OwnerDelivery['state'] {
  const path = delivery?.path ?? 'detached'
  if (path === 'dormant') return 'idle'
  if (path === 'backingOff') return 'backing-off'
  if (path.startsWith('delivering')) return 'delivering'
  if (path === 'detached') return 'none'
  return path === 'holding.polling' || path === 'holding.waiting' ? 'busy' : 'gathering'
}

export interface Reasons {
  readonly name: string
  readonly owed: number
  readonly leased: number
  readonly state: OwnerDelivery['state']
  readonly delivery: DeliveryState | undefined
  readonly isPushed: boolean
  readonly isDelivering: boolean
  /** The id of the task whose run is the owner; undefined if the owner is not a run. */
  readonly runId: string | undefined
}

/** Explains why a result still waits, and what to do. */
export function reasonOf({ name, owed, leased, state, delivery, isPushed, isDelivering, runId }: Reasons): string {
  if (owed + leased === 0) return 'No result waits for delivery.'
  switch (state) {
    case 'none':
      if (runId !== undefined) {
        return `The run of task ${preview(sentText(runId))} owns these results, and can take them through context.children or its tools. When that task ends, its owner receives the remaining results.`
      }
      return leased > 0 && owed === 0
        ? 'A message that carries these results is being delivered. If it is not accepted, they are owed again.'
        : isPushed
          ? 'The host delivers the results of this owner with its own code.'
          : `No auto-trigger is subscribed for ${preview(sentText(name))}. The next beforeTurn, check_async_tasks or wait_for_async_tasks of this owner delivers the results. To start turns of its agent, set isAgentBusy and triggerAgentTurn.`
    case 'idle':
      return 'A message that carries these results is already being delivered.'
    case 'gathering':
      return 'The auto-trigger waits a moment for more tasks to end, and then sends their results in one message.'
    case 'busy':
      if (isDelivering) return 'Another message to this agent is being delivered. The next message is sent after that.'
      return delivery?.path === 'holding.waiting'
        ? 'The agent is busy. The message is sent when the agent reports that it is idle.'
        : 'The agent is busy (isAgentBusy). The auto-trigger checks again periodically; notifyIdle() sends the message at once.'
    case 'backing-off':
      return `The agent has refused ${delivery?.failures ?? 1} message(s) in a row, because triggerAgentTurn rejected or took too long. The auto-trigger tries again after the back-off; notifyIdle() tries at once.`
    case 'delivering':
      return 'A message is being delivered: triggerAgentTurn has not settled.'
  }
}
