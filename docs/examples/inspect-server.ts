import { createInspector } from 'agent-tasks/inspect'
import { localInstance, startTaskServer } from 'agent-tasks/server'

const inspector = createInspector({
  url: process.env['INSPECTOR_URL'] ?? 'ws://localhost:8080',
  filter: (message) => message.type !== '@xstate.event', // only actors and snapshots
  onError: (error) => console.warn('the inspector:', error),
})
const greeter = localInstance({ id: 'greeter', tools: [{ name: 'greet', execute: () => 'hello' }] })
const server = await startTaskServer({ port: 0, tasks: { wsPort: 0 }, instances: [greeter], inspect: inspector })
server.taskManager.submitTask({ task_name: 'Greet', commands: [{ tool_name: 'greet', args: {} }] })
await server.close()
await inspector.close()
