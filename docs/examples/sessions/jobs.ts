/**
 * A scripted session: an agent runs real programs as commands. One succeeds, one fails, one runs in the background and is looked at, one is stopped,
 * and what the host has not allowed is refused.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentTasks } from 'agent-tasks'

const project = mkdtempSync(join(tmpdir(), 'agent-tasks-session-'))
writeFileSync(
  join(project, 'test.mjs'),
  `console.log('ok 1'); console.log('not ok 2'); console.error('1 failed'); process.exit(1)`,
)
writeFileSync(join(project, 'server.mjs'), `console.log('listening'); setInterval(() => {}, 1000)`)

const tasks = createAgentTasks({
  commands: { allow: ['node', 'sh'], env: ['NODE_ENV'], cwd: project, maxCommands: 2, defaultTimeoutSeconds: 60 },
})
const { run_command: run, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools

const version = await run.execute({ command: 'node', args: ['-p', 'process.env.NODE_ENV'], env: { NODE_ENV: 'test' } })
say('the output of a program', version.llmContent)
assert.match(version.llmContent, /"exit_code": 0,[^]*"final_message": "test"/)

const failed = await run.execute({ command: 'node', args: ['test.mjs'] })
say('a program that fails', failed.llmContent)
assert.match(failed.llmContent, /"exit_code": 1,[^]*1 failed[^]*not ok 2/)

const server = await run.execute({ command: 'node', args: ['server.mjs'], async: true })
say('a program in the background', server.llmContent)
const id = String(server.metadata?.['agentId'])
while (tasks.getAsyncTaskManager().readOutput(id)?.text !== 'listening\n') await new Promise(setImmediate)
const list = await check.execute({})
say('the list', list.llmContent)
assert.match(list.llmContent, /node server\.mjs - output: "listening"/)

const stopped = await check.execute({ task_id: id, action: 'cancel' })
assert.match(stopped.llmContent, /^Cancelled task: node-/)
const details = await check.execute({ task_id: id })
say('what it had written', details.llmContent)
assert.match(details.llmContent, /"outputTail": "listening"/)

const slow = await run.execute({
  command: 'sh',
  args: ['-c', 'echo step 1; sleep 60'],
  timeout_seconds: 0.5,
  async: true,
})
assert.equal(slow.error, undefined)
const late = await wait.execute({})
say('a program that takes too long', late.llmContent)
assert.match(late.llmContent, /Task timed out[^]*step 1/)

for (const call of [
  { command: 'npm', args: ['test'] },
  { command: 'node', cwd: '/' },
  { command: 'node', env: { LD_PRELOAD: 'x.so' } },
]) {
  const { error, llmContent } = await run.execute(call)
  say('what is not allowed', llmContent)
  assert.equal(error?.type, 'parameter_validation')
}

await tasks.dispose()
rmSync(project, { recursive: true })

function say(what: string, text: string): void {
  console.log(`--- ${what}\n${text}\n`)
}
