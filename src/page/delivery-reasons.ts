/** Describes the state of an owner's deliveries. */
import type { DeliveryStanding } from '../async-tasks/delivery/delivery-standings.js'
import { preview } from '../text/preview.js'
import { sentText } from './texts.js'
import type { OwnerDelivery } from './wire.js'

export function stateOf(standing: DeliveryStanding | undefined): OwnerDelivery['state'] {
  const path = standing?.path ?? 'detached'
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
  readonly standing: DeliveryStanding | undefined
  readonly isPushed: boolean
  readonly isDelivering: boolean
  /** The task of the run, if the owner is a run. */
  readonly runId: string | undefined
}

/** Explains why a result still waits, and what to do. */
export function reasonOf({ name, owed, leased, state, standing, isPushed, isDelivering, runId }: Reasons): string {
  if (owed + leased === 0) return 'Nothing is owed.'
  switch (state) {
    case 'none':
      if (runId !== undefined) {
        return `The run of task ${preview(sentText(runId))} owns it, and can take it (children, or its tools). When that task ends, its owner gets what is left.`
      }
      return leased > 0 && owed === 0
        ? 'A message with them is on its way: its outcome acknowledges them or owes them again.'
        : isPushed
          ? 'Its host delivers by itself.'
          : `No auto-trigger is subscribed for ${preview(sentText(name))}: the next beforeTurn, check_async_tasks or wait_for_async_tasks of this owner carries them. Set isAgentBusy and triggerAgentTurn to wake its agent.`
    case 'idle':
      return 'What is owed is in another message.'
    case 'gathering':
      return 'It waits a moment for further tasks to end, and sends one message.'
    case 'busy':
      if (isDelivering) return 'Another message to this agent is in flight: the next goes out when that has ended.'
      return standing?.path === 'holding.waiting'
        ? 'The agent is busy. The message goes out when it says that it is idle.'
        : 'The agent is busy (isAgentBusy). It is asked again and again; notifyIdle() sends the message at once.'
    case 'backing-off':
      return `The agent has refused ${standing?.failures ?? 1} message(s) in a row: triggerAgentTurn rejected, or took too long. It is tried again after a while; notifyIdle() does it at once.`
    case 'delivering':
      return 'A message is in flight: triggerAgentTurn has not settled.'
  }
}
