/** An actor with the registry's logic, without the checks of the manager. */
import { createActor } from 'xstate'
import { asyncTaskMachine } from '../../../machines/async-task.js'
import { Families } from '../../../machines/parts/families.js'
import { ActiveTimes } from '../../../machines/active-times.js'
import { Pauses } from '../../../machines/parts/pauses.js'
import { History } from '../../../machines/history.js'
import { ChangeFeed, type RegistryNotification } from '../../../machines/change-feed.js'
import { Ledger } from '../../../machines/ledger.js'
import type { TaskAdmission } from '../../../machines/task-admission.js'
import { TaskLimits } from '../../../machines/task-limits.js'
import { SlotPools, Slots } from '../../../machines/slots.js'
import type { Admission, RegistryAnswers, RegistryEffect, RegistryQuestion } from '../../../machines/registry-events.js'
import { createRegistryLogic } from '../../../machines/registry.js'
import type { Lease } from '../../../machines/task-entry.js'

export interface RegistryOptions {
  readonly max: number
  readonly notifyCancelled?: boolean
}

export function startRegistry({ max, notifyCancelled = false }: RegistryOptions) {
  let now = 0
  const notifications: RegistryNotification[] = []
  const feed = new ChangeFeed(
    () => now,
    (notification) => notifications.push(notification),
  )
  const slots = new Slots(max, () => now)
  const history = new History(() => (slots.max === -1 ? 10 : slots.max * 2))
  const ledger: Ledger = new Ledger({
    changes: feed,
    notifyCancelled,
    find: (id) => history.get(id),
    onCleared: (entry) => history.offer(entry),
  })
  const families = new Families({ maxDepth: 3, maxChildren: 20 }, ledger, () => undefined)
  const core = createRegistryLogic({
    slots: new SlotPools((pool) => (pool === 'task' ? slots : new Slots(-1, () => now))),
    limits: new TaskLimits(),
    ledger,
    history,
    families,
    pauses: new Pauses(),
    active: new ActiveTimes(),
    changes: feed,
    task: asyncTaskMachine,
    elapsed: () => now,
    describeError: (error) => ({ error: String(error) }),
    expiry: { error: 'It has waited too long.' },
  })
  const actor = createActor(core.logic)
  actor.start()
  const ask = <Q extends RegistryQuestion>(question: Q): RegistryAnswers[Q['type']] => {
    actor.send(question)
    return core.takeAnswer() as RegistryAnswers[Q['type']]
  }
  /** The ids of the tasks with these effects so far. */
  const idsWith = (type: RegistryEffect['type']): string[] =>
    core.effects.filter((effect) => effect.type === type).map(({ entry }) => entry.record.id)

  const complete = (...ids: string[]): void => {
    for (const id of ids) history.get(id)?.ref?.send({ type: 'task.complete', output: { final_message: id } })
  }

  return {
    actor,
    ask,
    slots,
    ledger,
    history,
    families,
    feed,
    effects: core.effects,
    aborted: () => idsWith('stopping'),
    started: () => idsWith('started'),
    advance: (ms: number) => (now += ms),
    register: (
      id: string,
      {
        isLaunched = true,
        reservationId,
        ...more
      }: Partial<TaskAdmission> & { isLaunched?: boolean; reservationId?: string } = {},
    ): Admission => {
      const admission = { id, subagentName: 's', goalPrompt: 'g', owner: 'main', graceMs: 0, ...more }
      return ask({ type: 'task.register', admission, isLaunched, reservationId })
    },
    reserve: (reservationId: string, ttlMs: number): boolean => ask({ type: 'reservation.take', reservationId, ttlMs }),
    take: (request: Parameters<Ledger['take']>[0]): Lease | undefined => ask({ type: 'lease.take', request }),
    complete,
    /** Completes tasks, whose handlers have run. */
    end: (...ids: string[]): void => {
      complete(...ids)
      for (const id of ids) history.markHandled(history.get(id)!)
    },
    phase: () => actor.getSnapshot().phase,
    ids: () => Array.from(history.entries(), ({ record }) => record.id),
    /** What was queued since, in words. */
    changes: () =>
      notifications.splice(0).map((notification) => {
        if (notification.type !== 'transition') return notification.type
        const { taskId, kind, from, to } = notification.transition
        return `${taskId} ${kind} ${from} ${to}`
      }),
    notifications,
  }
}

export const idsOf = (lease: Lease | undefined): string[] => Array.from(lease?.entries ?? [], ({ record }) => record.id)
