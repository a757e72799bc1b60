/** A scripted session: an agent launches three real programs where only one may run, looks at its queue, and cancels one that waits. */
import assert from 'node:assert/strict'
import { createAgentTasks, processRunner, runCommandLine } from 'agent-tasks'

const tasks = createAgentTasks({
  maxAsyncTasks: 1,
  whenFull: 'queue',
  queue: { max: 2 },
  subagents: {
    scout: processRunner({
      command: process.execPath,
      args: ['-e', 'setTimeout(() => console.log("looked at " + process.argv[1]), 200)', '{goal}'],
    }),
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools
const launch = (goal: string) => task.execute({ subagent_name: 'scout', goal_prompt: goal, async: true })

say('the agent reads', (await launch('the parser')).llmContent)

const second = await launch('the lexer')
say('the agent reads', second.llmContent)
assert.match(second.llmContent, /^Async task queued: .* No slot is free: it is number 1 in the queue/)
const third = await launch('the printer')
assert.match(third.llmContent, /number 2 in the queue/)

const refused = await launch('the tests')
say('the agent reads', refused.llmContent)
assert.match(refused.llmContent, /^Max async tasks \(1\) reached, and the queue is full \(2 waiting, queue\.max\)\./)

const list = await check.execute({})
say('the agent reads', list.llmContent)
assert.match(list.llmContent, /- Queued: 2\n- Running: 1/)
say('a person reads', runCommandLine(tasks.commands, '/tasks')?.text ?? '')

const cancelled = await check.execute({ task_id: String(second.metadata?.['agentId']), action: 'cancel' })
say('the agent reads', cancelled.llmContent)
assert.match(cancelled.llmContent, /^Cancelled task/)

const ended = await wait.execute({ task_ids: [String(third.metadata?.['agentId'])] })
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /looked at the printer/)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
