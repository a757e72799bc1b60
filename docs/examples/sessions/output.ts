/** A scripted session: the output of programs is followed as it comes, and a result that is too long for a message is read in parts. */
import assert from 'node:assert/strict'
import { createAgentTasks } from 'agent-tasks'

const tasks = createAgentTasks({ commands: { allow: ['node'] } })
const manager = tasks.getAsyncTaskManager()
const { run_command: run, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools

// A call in place: the host shows what the program writes while the call goes on.
const shown: string[] = []
await run.execute(
  {
    command: 'node',
    args: ['-e', `let n = 0; const step = () => { console.log('step', ++n); if (n < 3) setTimeout(step, 50) }; step()`],
  },
  { onUpdate: ({ text, cursor }) => void shown.push(`${cursor}: ${text}`) },
)
say('what the host showed', shown.join(''))
assert.match(shown.join(''), /step 1\n[^]*21: [^]*step 3\n/)

// In the background: from a cursor on, to the end of the task.
const script = `for (let n = 1; n <= 2000; n += 1) console.log('line', n, '.'.repeat(20))`
const launched = await run.execute({ command: 'node', args: ['-e', script], async: true })
const id = String(launched.metadata?.['agentId'])
let bytes = 0
await new Promise<void>((resolve) => {
  manager.output$(id).subscribe({ next: ({ cursor }) => (bytes = cursor), complete: resolve })
})
say('followed in the background', `${bytes} bytes`)
assert.equal(bytes, 60_893)

// The result is longer than a message: the model gets both ends of it, and the call that reads the rest.
const { llmContent: message } = await wait.execute({ task_ids: [id] })
say('what the model reads', message)
assert.ok(Buffer.byteLength(message) < 2048 + 200)
assert.match(message, /line 1 \.+[^]*characters left out[^]*line 2000 \.+/)
const [, call = ''] = /Read the rest with check_async_tasks (\{.*\})\]/.exec(message) ?? []
const part = await check.execute({ ...(JSON.parse(call) as object), max_bytes: 200 })
say('a part of it', part.llmContent)
assert.match(part.llmContent, /bytes remain\. Read on with check_async_tasks/)

await tasks.dispose()

function say(what: string, text: string): void {
  console.log(`--- ${what}\n${text}\n`)
}
