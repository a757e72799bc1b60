/**
 * A scripted session: a subagent asks a question, which wakes the idle agent, and the agent answers with a tool. A shell script asks over the
 * socket of its task, and a person answers that.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentTasks, processRunner, runCommandLine } from 'agent-tasks'

/** A program that asks over its socket, as `agent-tasks ask` does, and prints the answer. */
const asking = `
  const { AGENT_TASK_SOCKET: path, AGENT_TASK_SOCKET_TOKEN: token } = process.env
  const schema = { type: 'object', properties: { answer: { enum: ['yes', 'no'] } }, required: ['answer'] }
  const socket = require('node:net').connect(path)
  socket.write(JSON.stringify({ token, message: 'Deploy to production?', schema }) + '\\n')
  socket.on('data', (line) => console.log('The answer was', JSON.parse(line).content.answer))`

const messages: string[] = []
const tasks = createAgentTasks({
  subagents: {
    release: async (_request, context) => {
      const { action, content } = await context.ask('Which branch?')
      return { final_message: `${action}: ${String(content?.['answer'])}` }
    },
    deploy: processRunner({ command: process.execPath, args: ['-e', asking], questions: true }),
  },
  isAgentBusy: () => false,
  triggerAgentTurn: (text) => void messages.push(text),
})
const { task, check_async_tasks: check } = tasks.tools

await task.execute({ subagent_name: 'release', goal_prompt: 'release 1.2', async: true })
const asked = await message()
say('the agent reads', asked)
assert.match(asked, /^This is a notification of background tasks\. No person wrote it/)
const [, call] = /Answer with check_async_tasks (\{.*\}), or/.exec(asked) ?? []
assert.ok(call !== undefined)
const answered = await check.execute({ ...(JSON.parse(call) as object), answer: 'main' })
say('the agent reads', answered.llmContent)
const ended = await message()
say('the agent reads', ended)
assert.match(ended, /"final_message": "accept: main"/)

const deploying = await task.execute({ subagent_name: 'deploy', goal_prompt: 'deploy 1.2', async: true })
say('the agent reads', await message())
const shown = runCommandLine(tasks.commands, '/tasks')?.text ?? ''
say('a person reads', shown)
assert.match(shown, /asks \(question-1\): Deploy to production\? \(yes, no\)$/)
const id = String(deploying.metadata?.['agentId'])
say('a person reads', runCommandLine(tasks.commands, `/task answer ${id} yes`)?.text ?? '')
const deployed = await message()
say('the agent reads', deployed)
assert.match(deployed, /The answer was yes/)
assert.equal(messages.length, 0)
await tasks.dispose()

/** The next message that wakes the agent. */
async function message(): Promise<string> {
  for (;;) {
    const text = messages.shift()
    if (text !== undefined) return text
    await sleep(10)
  }
}

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
