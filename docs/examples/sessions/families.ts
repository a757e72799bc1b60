/**
 * A scripted session: an agent starts a subagent, which is an agent itself and starts real programs. The agent looks at the family, the parent
 * ends while a program runs, and the whole is cancelled.
 */
import assert from 'node:assert/strict'
import { createAgentTasks, processRunner, runCommandLine } from 'agent-tasks'

/** A program that prints a line and runs for a while. */
const program = (text: string, ms: number) =>
  processRunner({
    command: process.execPath,
    args: ['-e', `console.log(${JSON.stringify(text)}); setTimeout(() => {}, ${ms})`],
  })

const tasks = createAgentTasks({
  // One slot: the parent has it, and its programs take slots of their own.
  maxAsyncTasks: 1,
  subagents: {
    notes: program('three fixes', 0),
    build: program('building', 60_000),
    release: async (_request, { taskId }) => {
      const tools = tasks.toolsOfRun(taskId)
      await tools.task.execute({ subagent_name: 'build', goal_prompt: 'the package', async: true })
      const notes = await tools.task.execute({ subagent_name: 'notes', goal_prompt: 'the change log' })
      say('the subagent reads', notes.llmContent)
      return { final_message: 'The notes are written, the build goes on.' }
    },
  },
})
const { task, check_async_tasks: check, wait_for_async_tasks: wait } = tasks.tools

const launched = await task.execute({ subagent_name: 'release', goal_prompt: 'release 1.2', async: true })
say('the agent reads', launched.llmContent)
assert.match(launched.llmContent, /^Async task launched: subagent 'release'/)

const ended = await wait.execute({})
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /"running_children": \[\s+"build-/)

const list = await check.execute({})
say('the agent reads', list.llmContent)
assert.match(list.llmContent, /\] release - completed .*\n {2}.*\] build - running/)

const [build] = tasks.getAsyncTaskManager().getRunningTasks('main')
assert.ok(build)
assert.equal(build.parentId, launched.metadata?.['agentId'])
const details = await check.execute({ task_id: build.id })
say('the agent reads', details.llmContent)

const cancelled = await check.execute({ task_id: build.id, action: 'cancel', reason: 'the release is off' })
say('the agent reads', cancelled.llmContent)
const shown = runCommandLine(tasks.commands, '/tasks')?.text ?? ''
say('a person reads', shown)
assert.match(shown, /build \(\d+s, stopping: .*\), because: the release is off - the package/)

await tasks.dispose()
assert.equal(tasks.getAsyncTaskManager().getRunningTasks().length, 0)

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
