/** Describes the delivery of results. */
import type { OwnerDelivery, PageTask } from '../../wire.js'
import { timeOfDay } from './format.js'
import { isRun } from './owners.js'

type Delivery = 'owed' | 'leased' | 'delivered'

/** The meanings of the terms. */
export const DELIVERY_MEANINGS: Readonly<Record<Delivery, string>> = {
  owed: 'its task has ended, and no message has carried it yet',
  leased: 'in a message that is being delivered; if that is not accepted, it is owed again',
  delivered: 'a message with it was accepted: it is not sent again',
}

const WHY_OWED: Readonly<Record<OwnerDelivery['state'], string>> = {
  none: 'Waits until the agent asks for its results, or its host passes them on',
  idle: 'Is sent with the next message',
  gathering: 'Waits a moment for other tasks to end, so that one message carries them all',
  busy: 'Waits until the agent is idle',
  'backing-off': 'The agent did not accept the last message, so it waits for the next attempt',
  delivering: 'Waits until the message that is being delivered has been accepted',
}

/** Explains why a result was not delivered; undefined if it was, or has no receiver. */
export function whyWaits({ delivery, group }: PageTask, owner: OwnerDelivery | undefined): string | undefined {
  if (delivery === 'leased') return 'In a message that the agent has not acknowledged yet.'
  if (delivery !== 'owed') return undefined
  if (isRun(group)) {
    return 'Waits until the run that launched its task takes it. If that run ends first, the result goes to its owner.'
  }
  const next = owner?.until === undefined ? '' : `, at ${timeOfDay(owner.until)}`
  return `${WHY_OWED[owner?.state ?? 'none']}${next}.`
}

/** Results that wait for the same reason. */
export interface WaitingGroup {
  readonly why: string
  /** The longest wait first. */
  readonly tasks: readonly PageTask[]
}

/** @param taskOf undefined for a task that is no longer known, whose result is then omitted */
export function waitingGroups(
  owner: OwnerDelivery,
  taskOf: (key: string) => PageTask | undefined,
): readonly WaitingGroup[] {
  const groups = new Map<string, PageTask[]>()
  for (const key of owner.waiting) {
    const task = taskOf(key)
    const why = task && whyWaits(task, owner)
    if (task === undefined || why === undefined) continue
    const group = groups.get(why)
    if (group) group.push(task)
    else groups.set(why, [task])
  }
  return Array.from(groups, ([why, tasks]) => ({ why, tasks: tasks.sort((a, b) => endOf(a) - endOf(b)) }))
}

const endOf = ({ endedAt = Infinity }: PageTask): number => endedAt
