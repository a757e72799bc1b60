/** A scripted session: calls that wait for their tasks, which move to the background. */
import assert from 'node:assert/strict'
import { createAgentTasks, processRunner, runCommandLine } from 'agent-tasks'

const build = processRunner({ command: process.execPath, args: ['-e', 'setTimeout(() => console.log("built"), 700)'] })

const tasks = createAgentTasks({ subagents: { build }, maxAsyncTasks: 1 })
const { task, wait_for_async_tasks: wait } = tasks.tools
const call = (goal_prompt: string, more: object = {}) => task.execute({ subagent_name: 'build', goal_prompt, ...more })
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

// A person does not want to wait any longer: the call returns, and the task goes on.
const first = call('the site')
await pause(100)
say('a person reads', runCommandLine(tasks.commands, '/background')?.text ?? '')
const moved = await first
say('the agent reads', moved.llmContent)
assert.match(moved.llmContent, /continues in the background/)

// It has taken the only slot: another task stays in the foreground.
const second = call('the documentation')
await pause(100)
const refused = runCommandLine(tasks.commands, '/background')?.text ?? ''
say('a person reads', refused)
assert.match(refused, /stays in the foreground/)
assert.match((await second).llmContent, /built/)

// The result of the first one is delivered later, once.
while (tasks.manager.getRunningTasks().length > 0) await pause(10)
const { reminder } = tasks.beforeTurn()
say('the agent reads', reminder?.text ?? '')
assert.match(reminder?.text ?? '', /built/)
tasks.afterTurn({ accepted: true })

// The model limits the time of its call.
const limited = await call('the examples', { background_after_seconds: 0.1 })
say('the agent reads', limited.llmContent)
assert.match(limited.llmContent, /has not ended within 0.1 s/)
assert.match((await wait.execute({})).llmContent, /built/)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
