/** A scripted session: programs are cancelled, each with a reason, and a call that is aborted leaves its program running. */
import assert from 'node:assert/strict'
import { createAgentTasks, processRunner, runCommandLine } from 'agent-tasks'

const server = processRunner({
  command: process.execPath,
  args: ['-e', 'console.log("ready"); setInterval(() => {}, 1000)'],
})
const quick = processRunner({ command: process.execPath, args: ['-e', 'setTimeout(() => console.log("built"), 300)'] })

const tasks = createAgentTasks({
  subagents: { server, quick },
  notifyCancelled: true,
  onForegroundAbort: 'keep',
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools
const start = async (goal_prompt: string): Promise<string> => {
  const { metadata } = await task.execute({ subagent_name: 'server', goal_prompt, async: true })
  return String(metadata?.['agentId'])
}

// The model cancels a task, and says why.
const first = await start('the old design')
const cancelled = await check.execute({ task_id: first, action: 'cancel', reason: 'the user wants the new design' })
say('the agent reads', cancelled.llmContent)

// A person ends one with a slash command.
const second = await start('the preview')
say('a person reads', runCommandLine(tasks.commands, `/task end ${second} it is in the way`)?.text ?? '')

// Both ends are in the next reminder, with their reasons.
const { reminder } = tasks.beforeTurn()
say('the agent reads', reminder?.text ?? '')
assert.match(reminder?.text ?? '', /"reason": "the user wants the new design"/)
assert.match(reminder?.text ?? '', /"reason": "it is in the way"/)
tasks.afterTurn({ accepted: true })

// A call in place is aborted: its task goes on, and its result is delivered.
const call = new AbortController()
const building = task.execute({ subagent_name: 'quick', goal_prompt: 'build' }, { signal: call.signal })
setTimeout(() => call.abort('the user pressed Escape'), 50)
const aborted = await building
say('the agent reads', aborted.llmContent)
assert.match(aborted.llmContent, /continues in the background/)
const built = await wait.execute({})
say('the agent reads', built.llmContent)
assert.match(built.llmContent, /built/)

// The session ends, with a reason for what still runs.
await start('the last one')
const ids = tasks.getAsyncTaskManager().cancelAll({ owner: 'main', reason: 'the session ends' })
assert.equal(ids.length, 1)
say('the agent reads', (await check.execute({ task_id: ids[0] })).llmContent)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
