/** An isAgentBusy whose promise never settles: notifyIdle() asks again at once, and the result arrives. */
import { expect, it, vi } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { waitFor } from '../../support/wait-for.js'

it('A6: notifyIdle() drops a question to isAgentBusy that has no answer', async () => {
  const delivered: string[] = []
  const isAgentBusy = vi.fn(() => new Promise<boolean>(() => undefined))
  const tasks = createAgentTasks({ isAgentBusy, triggerAgentTurn: (text) => void delivered.push(text) })
  const launch = { subagentName: 's', goalPrompt: 'g' }
  tasks.getAsyncTaskManager().launch(launch, () => Promise.resolve({ final_message: 'the result' }))
  await waitFor(() => expect(isAgentBusy).toHaveBeenCalledTimes(1))
  isAgentBusy.mockReturnValue(Promise.resolve(false))
  tasks.notifyIdle()
  await waitFor(() => expect(delivered.join()).toContain('the result'))
  await tasks.dispose()
})
