/** A host with one auto-trigger and a manual clock, whose turns the test accepts or refuses. */
import { vi } from 'vitest'
import {
  AsyncTaskAutoTrigger,
  type AutoTriggerOptions,
  type ReminderSource,
  type TurnDelivery,
} from '../../../src/features/delivery/auto-trigger.js'
import type { BusySource } from '../../../src/features/delivery/busy.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { AsyncTaskReminderService } from '../../../src/features/delivery/reminder-service.js'
import type { OnError } from '../../../src/isolation/error-report.js'
import { createPacedClock } from '../../support/paced-clock.js'

/** A turn that was started. */
interface StartedTurn extends TurnDelivery {
  readonly text: string
  readonly at: number
  readonly accept: () => void
  readonly refuse: (reason?: unknown) => void
}

export interface TriggerHostOptions extends AutoTriggerOptions {
  readonly isAgentBusy?: BusySource
  /** Instead of turns that the test accepts and refuses. */
  readonly turn?: (text: string, delivery: TurnDelivery) => unknown
  readonly reminders?: (reminders: AsyncTaskReminderService) => ReminderSource
}

/** Builds the host; its trigger is not subscribed. */
export function setUpTrigger({
  isAgentBusy = () => false,
  turn,
  reminders: wrap,
  ...options
}: TriggerHostOptions = {}) {
  const clock = createPacedClock(1_000)
  const onError = vi.fn<OnError>()
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock, onError })
  const reminders = new AsyncTaskReminderService(manager)
  const turns: StartedTurn[] = []
  const startTurn = (text: string, delivery: TurnDelivery): Promise<void> =>
    new Promise((accept, refuse) => turns.push({ ...delivery, text, at: clock.now(), accept, refuse }))
  const createTrigger = (more: AutoTriggerOptions = {}): AsyncTaskAutoTrigger =>
    new AsyncTaskAutoTrigger(manager, wrap?.(reminders) ?? reminders, isAgentBusy, turn ?? startTurn, {
      ...options,
      ...more,
    })
  const register = (id: string, owner = 'main'): void => {
    manager.registerTask({ id, owner, subagentName: 'helper', goalPrompt: 'help' })
  }
  const complete = (id: string, owner?: string): void => {
    register(id, owner)
    manager.completeTask(id, { final_message: `${id} is done` })
  }
  const deliveryOf = (id: string): string | undefined => manager.getTask(id)?.delivery
  return { clock, onError, manager, reminders, turns, startTurn, createTrigger, register, complete, deliveryOf }
}
