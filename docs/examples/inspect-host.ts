import { createAgentTasks } from 'agent-tasks'
import { createInspector } from 'agent-tasks/inspect'

const inspector = createInspector() // the relay at ws://localhost:8080
const tasks = createAgentTasks({
  subagents: { helper: () => 'hello' },
  inspect: inspector,
  isAgentBusy: () => false,
  triggerAgentTurn: (text) => console.log(text),
})
tasks.launch('helper', 'say hello')
await tasks.manager.onIdle()
await tasks.dispose()
await inspector.close() // sends the waiting messages
