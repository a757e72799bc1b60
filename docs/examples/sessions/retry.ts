/** A scripted session: a real program fails twice, is run again each time, and the agent hears of its last run only. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentTasks, processRunner } from 'agent-tasks'

const folder = mkdtempSync(join(tmpdir(), 'retry-'))
const program = `
const { appendFileSync, readFileSync } = require('node:fs')
appendFileSync('runs', 'x')
const runs = readFileSync('runs', 'utf8').length
if (runs < 3) { console.error('the registry does not answer'); process.exit(75) }
console.log('installed in run ' + runs)
`
const tasks = createAgentTasks({
  subagents: {
    install: {
      run: processRunner({ command: process.execPath, args: ['-e', program], cwd: folder }),
      retry: { attempts: 3, on: ['exit-code'], exitCodes: [75], backoff: { initialMs: 50 } },
    },
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools

const launched = await task.execute({ subagent_name: 'install', goal_prompt: 'install it', async: true })
say('the agent reads', launched.llmContent)
const id = String(launched.metadata?.['agentId'])

const ended = await wait.execute({ task_ids: [id] })
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /installed in run 3/)
assert.doesNotMatch(ended.llmContent, /does not answer/)

const details = await check.execute({ task_id: id })
say('the agent reads', details.llmContent)
assert.equal(tasks.getAsyncTaskManager().getTask(id)?.attempts?.length, 2)
assert.match(details.llmContent, /exited with code 75/)

await tasks.dispose()
rmSync(folder, { recursive: true })

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
