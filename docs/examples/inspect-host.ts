import { createAgentTasks } from 'agent-tasks'
import { createInspector } from 'agent-tasks/inspect'

const inspector = createInspector() // the relay at ws://localhost:8080
const tasks = createAgentTasks({
  inspect: inspector,
  isAgentBusy: () => false,
  triggerAgentTurn: (text) => console.log(text),
})
const manager = tasks.getAsyncTaskManager()
manager.launch({ subagentName: 'helper', goalPrompt: 'say hello' }, () => ({ final_message: 'hello' }))
await manager.onIdle()
await tasks.dispose()
await inspector.close() // sends the waiting messages
