/** A scripted session: a person pauses the background tasks while an agent works, and lets them go on. */
import assert from 'node:assert/strict'
import { createAgentTasks, runCommandLine } from 'agent-tasks'

const tasks = createAgentTasks({
  subagents: {
    build: async ({ goal }) => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      return `built ${goal}`
    },
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools
const launch = async (goal_prompt: string, isAsync = true) => {
  const result = await task.execute({ subagent_name: 'build', goal_prompt, async: isAsync })
  say('the agent reads', result.llmContent)
  return { text: result.llmContent, id: String(result.metadata?.['agentId']) }
}
const type = (line: string) => {
  const text = runCommandLine(tasks.commands, line)?.text ?? ''
  say(`a person types ${line}, and reads`, text)
  return text
}

const parser = await launch('the parser')
assert.match(
  type('/pause'),
  /^Paused: the tasks of main, since .* Running tasks continue. No other task starts until \/resume\.$/,
)

const lexer = await launch('the lexer')
assert.match(lexer.text, /^Async task queued: .* Background tasks are paused: it waits until a person resumes them/)
assert.match((await launch('the printer', false)).text, /^Background tasks are paused\. Run it with async: true/)

const built = await wait.execute({ task_ids: [parser.id] })
say('the agent reads', built.llmContent)
assert.match(built.llmContent, /built the parser/)
const list = await check.execute({})
say('the agent reads', list.llmContent)
assert.match(list.llmContent, /build - queued \(.*\), paused - the lexer/)

assert.equal(type('/resume'), 'Background tasks start again.')
const ended = await wait.execute({ task_ids: [lexer.id] })
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /built the lexer/)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
