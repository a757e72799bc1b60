/** Compares the manager with its model, with a command of your own among the kit's. */
import fc from 'fast-check'
import { createManagerPair, managerCommand, managerCommands, managerModel } from 'agent-tasks/testing'

/** What a host does when the user closes the window: it cancels every running task. */
const cancelAll = managerCommand('cancel all', {
  model: ({ ledger }) => {
    const running = managerModel.running(ledger)
    for (const task of running) managerModel.settle(ledger, task, { status: 'cancelled' })
    return running.length
  },
  real: ({ manager }) => {
    const running = manager.getRunningTasks()
    for (const { id } of running) manager.cancelTask(id)
    return running.length
  },
})

export const cancelAllProperty = fc.property(
  fc.commands([...managerCommands(), fc.constant(cancelAll)], { maxCommands: 50 }),
  (commands) => fc.modelRun(() => createManagerPair({ maxAsyncTasks: 2 }), commands),
)
