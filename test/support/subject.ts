/**
 * The subject of a property: the functions that make a manager, its reminders and its trigger. Tests make real ones. `npm run faults` makes broken ones,
 * but only through public options and wrappers.
 */
import {
  AsyncTaskAutoTrigger,
  type AutoTriggerOptions,
  type TriggerAgentTurn,
} from '../../src/features/delivery/auto-trigger.js'
import type { BusySource } from '../../src/features/delivery/busy.js'
import type { AsyncTaskManagerOptions } from '../../src/async-tasks/manager-options.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { AsyncTaskReminderService, type ReminderServiceOptions } from '../../src/features/delivery/reminder-service.js'
import { createTaskHandle, type TaskHandle } from '../../src/host/task-handle.js'

export interface Subject {
  createManager(options: AsyncTaskManagerOptions): AsyncTaskManager
  createReminders(manager: AsyncTaskManager, options?: ReminderServiceOptions): AsyncTaskReminderService
  createTrigger(
    manager: AsyncTaskManager,
    reminders: AsyncTaskReminderService,
    isAgentBusy: BusySource,
    triggerAgentTurn: TriggerAgentTurn,
    options?: AutoTriggerOptions,
  ): AsyncTaskAutoTrigger
  /** Makes the handle of a retained task. */
  createHandle(manager: AsyncTaskManager, taskId: string): TaskHandle
}

/** How to break a subject. Each function changes the arguments or the result of a constructor. */
export interface Sabotage {
  managerOptions?(options: AsyncTaskManagerOptions): AsyncTaskManagerOptions
  wrapManager?(manager: AsyncTaskManager): AsyncTaskManager
  reminderOptions?(options: ReminderServiceOptions): ReminderServiceOptions
  wrapReminders?(reminders: AsyncTaskReminderService, manager: AsyncTaskManager): AsyncTaskReminderService
  triggerOptions?(options: AutoTriggerOptions, manager: AsyncTaskManager): AutoTriggerOptions
  wrapBusy?(isAgentBusy: BusySource): BusySource
  wrapTurn?(triggerAgentTurn: TriggerAgentTurn, manager: AsyncTaskManager): TriggerAgentTurn
  wrapTrigger?(trigger: AsyncTaskAutoTrigger, manager: AsyncTaskManager): AsyncTaskAutoTrigger
  wrapHandle?(handle: TaskHandle, manager: AsyncTaskManager): TaskHandle
}

/** Makes a subject. A sabotage breaks it. */
export function createSubject(sabotage: Sabotage = {}): Subject {
  return {
    createManager(options) {
      const manager = new AsyncTaskManager(sabotage.managerOptions?.(options) ?? options)
      return sabotage.wrapManager?.(manager) ?? manager
    },
    createReminders(manager, options = {}) {
      const reminders = new AsyncTaskReminderService(manager, sabotage.reminderOptions?.(options) ?? options)
      return sabotage.wrapReminders?.(reminders, manager) ?? reminders
    },
    createTrigger(manager, reminders, isAgentBusy, triggerAgentTurn, options = {}) {
      const trigger = new AsyncTaskAutoTrigger(
        manager,
        reminders,
        sabotage.wrapBusy?.(isAgentBusy) ?? isAgentBusy,
        sabotage.wrapTurn?.(triggerAgentTurn, manager) ?? triggerAgentTurn,
        sabotage.triggerOptions?.(options, manager) ?? options,
      )
      return sabotage.wrapTrigger?.(trigger, manager) ?? trigger
    },
    createHandle(manager, taskId) {
      const handle = createTaskHandle(manager, manager.registry.history.get(taskId)!)
      return sabotage.wrapHandle?.(handle, manager) ?? handle
    },
  }
}
