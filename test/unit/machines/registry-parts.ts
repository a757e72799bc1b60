/** An actor with the registry's logic, without the checks of the manager. */
import { createActor } from 'xstate'
import { asyncTaskMachine } from '../../../machines/async-task.js'
import { Families } from '../../../machines/families.js'
import { History } from '../../../machines/history.js'
import { Journal, type RegistryNotification } from '../../../machines/journal.js'
import { Ledger } from '../../../machines/ledger.js'
import type { TaskAdmission } from '../../../machines/records.js'
import { SlotPools, Slots } from '../../../machines/slots.js'
import { createRegistryLogic, type Admission } from '../../../machines/task-registry.js'
import type { Lease } from '../../../machines/task-entry.js'

export interface RegistryOptions {
  readonly max: number
  readonly notifyCancelled?: boolean
}

export function startRegistry({ max, notifyCancelled = false }: RegistryOptions) {
  let now = 0
  const notifications: RegistryNotification[] = []
  const aborted: string[] = []
  const started: string[] = []
  const journal = new Journal(
    () => now,
    (notification) => notifications.push(notification),
  )
  const slots = new Slots(max, () => now)
  const history = new History(() => (slots.max === -1 ? 10 : slots.max * 2))
  const ledger: Ledger = new Ledger({
    journal,
    notifyCancelled,
    find: (id) => history.get(id),
    onCleared: (entry) => history.offer(entry),
  })
  const families = new Families({ maxDepth: 3, maxChildren: 20 }, ledger, () => undefined)
  const host = {
    requestAbort: (id: string) => void aborted.push(id),
    requestWrapUp: () => undefined,
    setQuestions: () => undefined,
  }
  const actor = createActor(
    createRegistryLogic({
      slots: new SlotPools((pool) => (pool === 'task' ? slots : new Slots(-1, () => now))),
      foreground: new Slots(-1, () => now),
      ...{ ledger, history, families, journal, task: asyncTaskMachine, host },
      elapsed: () => now,
      describeError: (error) => ({ error: String(error) }),
      startRun: (entry) => started.push(entry.record.id),
      expiry: { error: 'It has waited too long.' },
      describeOverrun: () => 'It has run too long.',
    }),
  )
  actor.start()

  const complete = (...ids: string[]): void => {
    for (const id of ids) history.get(id)?.ref?.send({ type: 'task.complete', output: { final_message: id } })
  }

  return {
    ...{ actor, slots, ledger, history, families, journal, aborted, started },
    advance: (ms: number) => (now += ms),
    register: (
      id: string,
      {
        isLaunched = true,
        reservationId,
        ...more
      }: Partial<TaskAdmission> & { isLaunched?: boolean; reservationId?: string } = {},
    ): Admission => {
      let answer: Admission | undefined
      const admission = { id, subagentName: 's', goalPrompt: 'g', owner: 'main', graceMs: 0, ...more }
      const reply = (given: Admission): void => {
        answer = given
      }
      actor.send({ type: 'task.register', admission, isLaunched, reservationId, parent: undefined, reply })
      return answer!
    },
    reserve: (reservationId: string, ttlMs: number): boolean | undefined => {
      let isTaken: boolean | undefined
      actor.send({ type: 'reservation.take', reservationId, ttlMs, reply: (answer) => (isTaken = answer) })
      return isTaken
    },
    take: (request: Parameters<Ledger['take']>[0]): Lease | undefined => {
      let lease: Lease | undefined
      actor.send({ type: 'lease.take', request, reply: (answer) => (lease = answer) })
      return lease
    },
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
