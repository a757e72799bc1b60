/** Records the deliveries of a live host, and judges the log: in a test, or later in production. */
import { createAgentTasks } from 'agent-tasks'
import { checkDeliveryLog, recordDeliveryLog } from 'agent-tasks/testing/ledger'

/** @returns the problems in the log of a host with this `triggerAgentTurn`, one line each */
export async function judge(triggerAgentTurn: (text: string) => Promise<void>): Promise<string[]> {
  const lines: string[] = [] // in production, a file
  const tasks = createAgentTasks({ onError: () => undefined, subagents: { helper: () => 'done' } })
  const recorder = recordDeliveryLog(tasks, {
    keepEntries: false,
    onEntry: (entry) => lines.push(JSON.stringify(entry)),
  })
  tasks.setupAsyncTaskAutoTrigger(() => false, recorder.wrapTurn(triggerAgentTurn))

  tasks.launch('helper', 'help')
  await tasks.manager.onIdle()
  recorder.stop()
  await tasks.dispose()

  const { lost, duplicated, outOfOrder, stranded } = checkDeliveryLog(lines.join('\n'))
  return [...lost, ...duplicated, ...outOfOrder, ...stranded].map(({ taskId, message }) => `${taskId} ${message}`)
}
