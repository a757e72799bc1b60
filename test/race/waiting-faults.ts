/** Planted faults of tasks that wait, are repeated, or exceed a budget: each wraps a part of a manager. */
import { limitedRecord } from '../../machines/task-record.js'
import { plans } from '../../src/async-tasks/run-plan.js'
import type { AlterManager } from './waiting-tasks.property.js'

export interface WaitingFault {
  readonly name: string
  readonly invariant: 'F8' | 'F9' | 'F10'
  readonly description: string
  readonly alter: AlterManager
  /** Only the property with a store and changed deadlines can see it. */
  readonly needsStore?: boolean
}

/** Starts some work twice. */
const startingTwice =
  (isTwice: (task: { readonly startedAt?: number; readonly attempt?: number }) => boolean): AlterManager =>
  (manager, engine) => {
    const start = engine.start.bind(engine)
    engine.start = (work) => {
      const task = manager.getTask(work.id)
      if (task !== undefined && isTwice(task)) start(work)
      return start(work)
    }
  }

export const waitingFaults: readonly WaitingFault[] = [
  {
    name: 'queue-overtaken',
    invariant: 'F8',
    description: 'the task that was launched last starts first',
    alter: ({ registry }) => {
      const { queue } = registry.pools.task
      queue.peek = () => queue.inOrder().findLast((entry) => !queue.isHeld(entry))
    },
  },
  {
    name: 'reservation-overtakes',
    invariant: 'F8',
    description: 'a slot whose reservation has expired is given to whoever asks first, not to what waits',
    alter: ({ registry }) => {
      Object.defineProperty(registry.pools.task, 'nextExpiry', { value: undefined })
    },
  },
  {
    name: 'queued-task-started-twice',
    invariant: 'F8',
    description: 'a task that has waited for a slot is started twice',
    alter: startingTwice(({ startedAt, attempt }) => startedAt !== undefined && attempt === undefined),
  },
  {
    name: 'cancelled-in-the-queue-starts',
    invariant: 'F8',
    description: 'a task keeps its place when it is cancelled',
    alter: ({ registry }) => {
      const { queue } = registry.pools.task
      const remove = queue.remove.bind(queue)
      queue.remove = (entry) => {
        if (entry.record.status !== 'queued' || entry.ref !== undefined) remove(entry)
      }
    },
  },
  {
    name: 'retry-started-twice',
    invariant: 'F9',
    description: 'a run that is repeated is started twice',
    alter: startingTwice(({ attempt = 1 }) => attempt > 1),
  },
  {
    name: 'one-run-too-many',
    invariant: 'F9',
    description: 'a task has one run more than its policy says',
    alter: (manager) => {
      const launch = manager.launch.bind(manager)
      manager.launch = (...given) => {
        const record = launch(...given)
        const entry = manager.registry.history.get(record.id)
        const plan = entry && plans.get(entry)
        if (entry !== undefined && plan?.retry !== undefined) {
          plans.set(entry, { ...plan, retry: { ...plan.retry, attempts: plan.retry.attempts + 1 } })
        }
        return record
      }
    },
  },
  {
    name: 'old-attempt-counts',
    invariant: 'F9',
    description: 'a repeated run has the number of the first, whose reports are taken for its own',
    alter: ({ registry: { ledger } }) => {
      const move = ledger.move.bind(ledger)
      ledger.move = (entry, record, at) => {
        const { attempt: _, ...fields } = record
        move(entry, fields, at)
      }
    },
  },
  {
    name: 'start-not-stored',
    invariant: 'F9',
    description: 'a run starts before that is stored',
    needsStore: true,
    alter: ({ registry: { persistence } }) => {
      if (persistence !== undefined) persistence.after = ({ onStored }) => onStored()
    },
  },
  {
    name: 'no-back-off',
    invariant: 'F9',
    description: 'a run is repeated at once',
    alter: ({ registry }) => {
      const { queue } = registry.pools.task
      const add = queue.add.bind(queue)
      queue.add = (entry, ticket) => add(entry, ticket)
    },
  },
  {
    name: 'over-budget-not-stopped',
    invariant: 'F10',
    description: 'a task over its budget is asked to conclude, and never stopped',
    alter: ({ registry }) => {
      const { actor } = registry
      const send = actor.send.bind(actor)
      actor.send = (event) => {
        if (event.type !== 'task.wrapping') send(event)
      }
    },
  },
  {
    name: 'deadline-not-changed',
    invariant: 'F10',
    description: 'the record has the changed deadline, and the run is stopped at the first one',
    needsStore: true,
    alter: ({ registry }) => {
      const send = registry.send.bind(registry)
      registry.send = (event) => {
        if (event.type !== 'deadline.change') send(event)
        else event.entry.record = limitedRecord(event.entry.record, event.inMs)
      }
    },
  },
  {
    name: 'deadline-of-the-next-process-forgotten',
    invariant: 'F10',
    description: 'a changed deadline is not stored',
    needsStore: true,
    alter: ({ registry: { persistence } }) => {
      if (persistence === undefined) return
      const noteChange = persistence.noteChange.bind(persistence)
      persistence.setDeadline = () => undefined
      persistence.noteChange = (entry) => {
        if (entry.record.timeoutMs === undefined) noteChange(entry)
      }
    },
  },
  {
    name: 'spent-forgotten',
    invariant: 'F10',
    description: 'what a run has spent is not stored',
    needsStore: true,
    alter: ({ registry: { persistence } }) => {
      if (persistence !== undefined) persistence.noteChange = () => undefined
    },
  },
]
