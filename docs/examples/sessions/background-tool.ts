/** A scripted session: one tool, which the model calls in the foreground and in the background, and a call that takes too long. */
import assert from 'node:assert/strict'
import { createAgentTasks } from 'agent-tasks'
import { defineTool } from 'agent-tasks/tools'
import { z } from 'zod'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const search = defineTool({
  name: 'search',
  description: 'Searches the archive.',
  inputSchema: z.strictObject({ query: z.string(), years: z.int() }),
  run: async ({ query, years }) => {
    await pause(years * 20)
    const text = `${years} reports about ${query}`
    return { llmContent: text, returnDisplay: text }
  },
})

const tasks = createAgentTasks()
const archive = tasks.background(search, { mode: 'choice', afterSeconds: 0.2 })

// The model waits for a short search: the call returns what the tool returns.
const short = await archive.execute({ query: 'storms', years: 2 })
say('the agent reads', short.llmContent)
assert.equal(short.llmContent, '2 reports about storms')

// It does not wait for a long one: the call returns at once, with the id of the task.
const long = await archive.execute({ query: 'floods', years: 10, run_in_background: true })
say('the agent reads', long.llmContent)
assert.match(long.llmContent, /^Async task launched: subagent 'search' \(ID: search-\S+\)/)
say('the agent reads', (await tasks.tools.check_async_tasks.execute({})).llmContent)

// It waits for one that takes longer than afterSeconds: the call moves to the background.
const moved = await archive.execute({ query: 'droughts', years: 30 })
say('the agent reads', moved.llmContent)
assert.match(moved.llmContent, /has not ended within 0.2 s: it continues in the background/)

// Both results are delivered, once.
while (tasks.manager.getRunningTasks().length > 0) await pause(10)
const { reminder } = tasks.beforeTurn()
say('the agent reads', reminder?.text ?? '')
assert.match(reminder?.text ?? '', /10 reports about floods[^]*30 reports about droughts/)
tasks.afterTurn({ accepted: true })
assert.equal(tasks.beforeTurn().reminder, undefined)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
