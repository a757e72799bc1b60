/** A scripted session: an agent sends follow-ups to a function and to a real program, and hears why one is refused. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentTasks, functionRunner, processRunner } from 'agent-tasks'

const script = 'echo ready; while read -r line; do echo "noted: $line"; [ "$line" = done ] && exit 0; done'

const tasks = createAgentTasks({
  subagents: {
    writer: functionRunner(
      async (_input, { messages }) => {
        const notes: string[] = []
        for await (const message of messages) {
          notes.push(message)
          if (message.startsWith('That is all')) break
        }
        return `Wrote it, with ${notes.length} notes in mind.`
      },
      { takesMessages: true },
    ),
    notebook: processRunner({ command: '/bin/sh', args: ['-c', script], stdin: 'messages' }),
    deaf: async (_request, { signal }) => {
      await sleep(60_000, undefined, { signal })
      return {}
    },
  },
})
const { task, send_to_task: send, wait_for_async_tasks: wait, check_async_tasks: check } = tasks.tools

const writer = await start('writer')
for (const message of ['Mention the tests.', 'That is all.']) {
  const { llmContent } = await send.execute({ task_id: writer, message })
  say('the agent reads', llmContent)
  assert.equal(llmContent, `Sent to task ${writer}.`)
}
const written = await wait.execute({ task_ids: [writer] })
say('the agent reads', written.llmContent)
assert.match(written.llmContent, /with 2 notes in mind/)

const notebook = await start('notebook')
await send.execute({ task_id: notebook, message: 'one' })
await send.execute({ task_id: notebook, message: 'done' })
const noted = await wait.execute({ task_ids: [notebook] })
say('the agent reads', noted.llmContent)
assert.match(noted.llmContent, /noted: one\\nnoted: done/)

const late = await send.execute({ task_id: notebook, message: 'one more' })
say('the agent reads', late.llmContent)
assert.match(late.llmContent, /Task .* cannot be continued: its program has no setting/)
const deaf = await start('deaf')
const refused = await send.execute({ task_id: deaf, message: 'hello' })
say('the agent reads', refused.llmContent)
assert.match(refused.llmContent, /^Not sent: Task .* takes no messages\.$/)
assert.match((await check.execute({ task_id: writer })).llmContent, /"messagesSent": 2/)
await tasks.dispose()

async function start(name: string): Promise<string> {
  const { metadata } = await task.execute({ subagent_name: name, goal_prompt: 'go on until told', async: true })
  return String(metadata?.['agentId'])
}

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
