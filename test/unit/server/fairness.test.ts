// Commands that end at once must not starve other requests.
import { expect, it } from 'vitest'
import { startTestServer, taskOf } from './test-server.js'

it('answers requests, and an active reader loses nothing, while thousands of commands end at once', async () => {
  const server = await startTestServer()
  const client = await server.client()
  await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
  const tasks = 8
  const commands = 500
  for (let count = 0; count < tasks; count += 1) {
    server.taskManager.submitTask({ type: 'task_submit', ...taskOf(...Array.from({ length: commands }, () => 'echo')) })
  }
  // One after the other, so that each needs a turn of its own.
  for (let call = 0; call < 5; call += 1) await server.call('/health')
  expect(server.taskManager.listTasks(undefined, 'completed').length).toBeLessThan(tasks)
  let told = 0
  for (let ended = 0; ended < tasks; told += 1) if ((await client.next()).type === 'task_complete') ended += 1
  expect(told).toBe(tasks * (2 * commands + 1))
})
