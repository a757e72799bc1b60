/** A scripted session: an agent launches two searches and a report that runs after both, and looks at what waits for what. */
import assert from 'node:assert/strict'
import { createAgentTasks, runCommandLine } from 'agent-tasks'

const tasks = createAgentTasks({
  maxAsyncTasks: 3,
  subagents: {
    search: async ({ goal }) => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      if (goal === 'nothing') throw new Error('Nothing was found.')
      return `found ${goal}`
    },
    report: ({ results = {} }) => {
      const found = Object.values(results).map(({ status, output }) => `${status}: ${output?.final_message ?? '-'}`)
      return `A report of ${found.length} searches. ${found.join('; ')}`
    },
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools
const launch = async (subagent_name: string, goal_prompt: string, more: object = {}) => {
  const result = await task.execute({ subagent_name, goal_prompt, async: true, ...more })
  return { text: result.llmContent, id: String(result.metadata?.['agentId']) }
}

const parser = await launch('search', 'the parser')
const lexer = await launch('search', 'the lexer')
const report = await launch('report', 'what both have found', { after: [parser.id, lexer.id] })
say('the agent reads', report.text)
assert.match(report.text, /^Async task queued: .* It waits for search-\S+, search-\S+, and starts by itself\./)

const list = await check.execute({})
say('the agent reads', list.llmContent)
assert.match(list.llmContent, /report - queued \(.*\), waits for /)
say('a person reads', runCommandLine(tasks.commands, '/tasks')?.text ?? '')

const ended = await wait.execute({ task_ids: [report.id] })
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /A report of 2 searches\. completed: found the parser; completed: found the lexer/)

const nothing = await launch('search', 'nothing')
const unmet = await launch('report', 'what it has found', { after: [nothing.id] })
const failed = await wait.execute({ task_ids: [unmet.id] })
say('the agent reads', failed.llmContent)
assert.match(failed.llmContent, /"error_code": "DEPENDENCY_FAILED"/)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
