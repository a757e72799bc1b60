/** A scripted session: an agent launches deployments that must not overlap, and searches that a provider allows only now and then. */
import assert from 'node:assert/strict'
import { createAgentTasks, runCommandLine } from 'agent-tasks'

const seen: string[] = []
const work = async (what: string) => {
  seen.push(`${what} starts`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  seen.push(`${what} ends`)
  return `${what}: done`
}
const tasks = createAgentTasks({
  maxAsyncTasks: 5,
  subagents: {
    deploy: ({ goal }) => work(goal),
    search: { run: ({ goal }) => work(goal), rate: { limit: 1, perMs: 300 } },
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools
const launch = async (subagent_name: string, goal_prompt: string, more: object = {}) => {
  const result = await task.execute({ subagent_name, goal_prompt, async: true, ...more })
  return { text: result.llmContent, id: String(result.metadata?.['agentId']) }
}

const first = await launch('deploy', 'the server', { concurrency_key: 'production' })
const second = await launch('deploy', 'the site', { concurrency_key: 'production' })
say('the agent reads', second.text)
assert.match(second.text, /It waits for the key "production", and starts by itself/)

const found = await launch('search', 'the parser')
const later = await launch('search', 'the lexer')
say('the agent reads', later.text)
assert.match(later.text, /It waits 1 s for the rate of subagent "search" \(1 per 0\.3 s\)/)

say('a person reads', runCommandLine(tasks.commands, '/tasks')?.text ?? '')
const list = await check.execute({})
assert.match(list.llmContent, /deploy - queued \(.*\), waits for the key "production"/)

// A call that waits for its task waits for its turn, too.
const inPlace = await task.execute({ subagent_name: 'deploy', goal_prompt: 'the docs', concurrency_key: 'production' })
say('the agent reads', inPlace.llmContent)
assert.match(inPlace.llmContent, /the docs: done/)

await wait.execute({ task_ids: [first.id, second.id, found.id, later.id] })
const deployments = seen.filter((line) => !/parser|lexer/.test(line))
say('what happened', seen.join('\n'))
assert.deepEqual(deployments, [
  'the server starts',
  'the server ends',
  'the site starts',
  'the site ends',
  'the docs starts',
  'the docs ends',
])
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
