/** Records the deliveries of a live host, and judges the log: in a test, or in production the day after. */
import { createAgentTasks } from 'agent-tasks'
import { checkDeliveryLedger, recordDeliveryLedger } from 'agent-tasks/testing/ledger'

/** @returns what is wrong with the log of a host whose agent answers so, line by line */
export async function judge(triggerAgentTurn: (text: string) => Promise<void>): Promise<string[]> {
  const lines: string[] = [] // a file, in production
  const tasks = createAgentTasks({ onError: () => undefined })
  const ledger = recordDeliveryLedger(tasks, {
    keepEntries: false,
    onEntry: (entry) => lines.push(JSON.stringify(entry)),
  })
  tasks.setupAsyncTaskAutoTrigger(() => false, ledger.wrapTurn(triggerAgentTurn))

  const manager = tasks.getAsyncTaskManager()
  manager.launch({ id: 'a', subagentName: 'helper', goalPrompt: 'help' }, () =>
    Promise.resolve({ final_message: 'done' }),
  )
  await manager.onIdle()
  ledger.stop()
  await tasks.dispose()

  const { lost, duplicated, outOfOrder, stranded } = checkDeliveryLedger(lines.join('\n'))
  return [...lost, ...duplicated, ...outOfOrder, ...stranded].map(({ taskId, what }) => `${taskId} ${what}`)
}
