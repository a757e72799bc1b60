/**
 * A remote worker with two tools. `note` returns its argument. `hold` continues when it is aborted, and ends 300 ms after the worker has connected
 * again. The worker prints what happens, as lines of JSON. Its argument: the URL of the server.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectInstance, instanceTool } from 'agent-tasks/client'

const say = (line: object): void => console.log(JSON.stringify(line))

const tools = [
  instanceTool({
    name: 'note',
    execute: (input, { taskId }) => {
      say({ noted: taskId })
      return input
    },
  }),
  instanceTool({
    name: 'hold',
    execute: async (_input, { signal, taskId }) => {
      say({ held: taskId })
      await once(signal, 'abort')
      const isConnected = (): boolean => worker.isConnected
      while (isConnected()) await sleep(5)
      while (!isConnected()) await sleep(5)
      await sleep(300)
      say({ stopped: taskId })
    },
  }),
]
const worker = await connectInstance(process.argv[2] ?? '', {
  id: 'w',
  tools,
  reconnect: { initialMs: 20, maxMs: 50, jitter: 0 },
})
say({ connected: worker.instanceId })
