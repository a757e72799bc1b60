/** Describes the delivery of results in words. */
import type { OwnerDelivery, PageTask } from '../../wire.js'
import { timeOfDay } from './format.js'
import { isRun } from './owners.js'

export const DELIVERY_MEANINGS: Readonly<Record<'owed' | 'leased' | 'delivered', string>> = {
  owed: 'the task has ended, and no message carries its result yet',
  leased:
    'a message that is being delivered carries the result; if the agent does not accept the message, the result is owed again',
  delivered: 'the agent accepted a message with the result, so the result is not sent again',
}

const WHY_OWED: Readonly<Record<OwnerDelivery['state'], string>> = {
  none: 'Waits until the agent asks for its results, or until the host delivers them',
  idle: 'Will be sent with the next message',
  gathering: 'Waits a moment for other tasks to end, so that one message carries all results',
  busy: 'Waits until the agent is idle',
  'backing-off': 'The agent did not accept the last message, so the result waits for the next attempt',
  delivering: 'Waits until the message that is being delivered has been accepted',
}

/** Explains why a result is not delivered yet. Returns undefined if it was delivered, or if nobody receives it. */
export function whyWaits({ delivery, group }: PageTask, owner: OwnerDelivery | undefined): string | undefined {
  if (delivery === 'leased') return 'In a message that the agent has not acknowledged yet.'
  if (delivery !== 'owed') return undefined
  if (isRun(group)) {
    return "Waits until the run that launched the task takes the result. If that run ends first, the owner of the run's task receives the result."
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

/** @param taskOf returns undefined for a task that the page no longer knows. Its result is left out */
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
