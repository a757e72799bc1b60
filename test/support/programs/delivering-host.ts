/**
 * A host with a store that cannot say which messages its agent has received. It launches a task, or resumes one with the argument `resume`. It prints
 * which messages it delivers, and then ends cleanly. With the argument `die`, it kills itself with SIGKILL as soon as it has delivered a message. Each
 * line of its output is JSON.
 */
import { createAgentTasks } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'

const [file = '', ...actions] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const tasks = createAgentTasks({
  store: sqliteStore(file),
  subagents: { shout: () => Promise.resolve({ final_message: 'HELLO' }) },
  isAgentBusy: () => false,
  triggerAgentTurn: (text, { taskIds, isRepeat = false }) => {
    say({ delivered: taskIds, isRepeat, isMarked: text.includes('possible repeat:') })
    // By this time the acceptance is on the disk.
    if (actions.includes('die')) setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50)
    return Promise.resolve()
  },
})
const { uncertain } = await tasks.recovered
say({ uncertain: uncertain.length })
if (!actions.includes('resume')) {
  await tasks.tools.task.execute({ subagent_name: 'shout', goal_prompt: 'hello', async: true })
}
await tasks.getAsyncTaskManager().onIdle()
if (actions.includes('die')) await new Promise(() => setInterval(() => undefined, 1000))
await tasks.dispose()
