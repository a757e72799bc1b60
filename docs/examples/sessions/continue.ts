/** A scripted session: the model continues two tasks that have ended, one of a function, and one of a program that keeps sessions, also after a crash. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentTasks, processRunner, type RunContext } from 'agent-tasks'
import { memoryStore, type MemoryStore } from 'agent-tasks/store'

const folder = mkdtempSync(join(tmpdir(), 'continue-'))
// It stands for a coding agent: it remembers each session in a file of its working directory, and prints the id of the session first.
writeFileSync(
  join(folder, 'coder.mjs'),
  `import { appendFileSync, readFileSync } from 'node:fs'
const [session, message] = process.argv.slice(2)
console.log(JSON.stringify({ type: 'session', id: session }))
appendFileSync(session, message + '\\n')
const told = readFileSync(session, 'utf8').trim().split('\\n')
console.log(JSON.stringify({ type: 'answer', text: 'I was told: ' + told.join(', then ') + '.' }))
`,
)

const host = (store: MemoryStore) =>
  createAgentTasks({
    store,
    subagents: {
      researcher: ({ goal }: { readonly goal: string }, { previous }: RunContext) =>
        previous === undefined
          ? `There are 3 causes of "${goal}".`
          : `Of what I found (${previous.output?.final_message ?? ''}) this is about: ${goal}`,
      coder: processRunner({
        command: process.execPath,
        args: ['coder.mjs', 'session-1', '{goal}'],
        cwd: folder,
        session: {
          from: 'jsonl:session/id',
          resume: ['coder.mjs', '{session}', '{message}'],
          result: 'jsonl:answer/text',
        },
      }),
    },
  })

const store = memoryStore()
const tasks = host(store)
const { task, send_to_task: send, wait_for_async_tasks: wait } = tasks.tools

const researcher = await start('researcher', 'the slow start')
say('the agent reads', (await wait.execute({})).llmContent)
const sent = await send.execute({ task_id: researcher, message: 'the first cause' })
say('the agent reads', sent.llmContent)
assert.match(sent.llmContent, new RegExp(`continues task ${researcher}`))
const answer = await wait.execute({})
say('the agent reads', answer.llmContent)
assert.match(answer.llmContent, /Of what I found \(There are 3 causes/)

const coder = await start('coder', 'fix the bug')
say('the agent reads', (await wait.execute({})).llmContent)
say('the record has the session', JSON.stringify(tasks.manager.getTask(coder)?.session?.id))

// The host dies. The next one finds what it has stored.
await tasks.manager.stored()
const next = host(store.copy())
await next.recovered
const handle = next.continue(coder, 'add a test')
const { final_message: told } = await handle.result
say('the next host reads', told ?? '')
assert.equal(told, 'I was told: fix the bug, then add a test.')
assert.equal(handle.record.continues, coder)

await next.dispose()
await tasks.dispose()
rmSync(folder, { recursive: true })

async function start(name: string, goal: string): Promise<string> {
  const { metadata } = await task.execute({ subagent_name: name, goal_prompt: goal, async: true })
  return String(metadata?.['agentId'])
}

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
