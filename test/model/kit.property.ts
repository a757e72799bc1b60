/** The model, commands and arbitraries of the kit, against the real manager. */
import fc from 'fast-check'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { recordDeliveryLog } from '../../src/testing/delivery-recorder.js'
import { managerCommands } from '../../src/testing/manager-commands.js'
import { createManagerPair } from '../../src/testing/manager-pair.js'
import { taskEvents, type TaskEvent } from '../../src/testing/arbitraries.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { ManualClock } from '../../src/testing/manual-clock.js'
import { commandList } from '../support/command-list.js'
import type { Subject } from '../support/subject.js'

const settings = fc.record({ maxAsyncTasks: fc.constantFrom(-1, 0, 1, 2), notifyCancelled: fc.boolean() })

/** Any sequence of the kit's commands (A1, A3, A4, A5, A6, A7). */
export const kitCommandsProperty = (subject: Subject) =>
  fc.property(settings, commandList(managerCommands(), 60), (given, commands) => {
    fc.modelRun(
      () => createManagerPair({ ...given, createManager: (options) => subject.createManager(options) }),
      commands,
    )
  })

/** The log of an agent that reads its reminders is clean, whatever happens to its tasks (A5). */
export const kitLedgerProperty = (subject: Subject) =>
  fc.property(
    settings,
    taskEvents({ owners: ['main', 'sub'] }),
    fc.integer({ min: 1, max: 5 }),
    (given, events, pace) => {
      const clock = createManualClock()
      const manager = subject.createManager({ ...given, clock })
      const recorder = recordDeliveryLog(manager, { clock })
      const reminders = subject.createReminders(manager)
      const remind = (): void => {
        for (const owner of ['main', 'sub']) reminders.leaseReminder({ owner })?.acknowledge()
      }
      events.forEach((event, index) => {
        apply(manager, clock, event)
        if (index % pace === 0) remind()
      })
      remind()
      const verdict = recorder.check()
      recorder.stop()
      if (!verdict.isClean) throw new Error(`A5: ${JSON.stringify(verdict, undefined, 2)}`)
    },
  )

function apply(manager: AsyncTaskManager, clock: ManualClock, event: TaskEvent): void {
  switch (event.type) {
    case 'register': {
      const { type: _, ...given } = event
      if (manager.getTask(event.id) !== undefined) return
      manager.registerTask({ ...given, subagentName: 'helper', goalPrompt: 'help' })
      return
    }
    case 'complete':
      manager.completeTask(event.id, event.output)
      return
    case 'fail':
      manager.failTask(event.id, event.error)
      return
    case 'cancel':
      manager.cancelTask(event.id)
      return
    case 'advance':
      clock.advance(event.ms)
  }
}
