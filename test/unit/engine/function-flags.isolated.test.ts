/** What was set on functions before a runner was an object goes on working for one version, with a warning. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type RunFunction } from '../../../src/index.js'
import { tick } from '../../support/limited-tasks.js'

const flagged = (taken: string[]): RunFunction => {
  const run: RunFunction = async (_input, { messages }) => {
    for await (const message of messages) {
      taken.push(message)
      break
    }
    return 'done'
  }
  return Object.assign(run, { takesMessages: true })
}

it('nothing warns of definitions and of functions without flags', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const manager = new AsyncTaskManager()
  onTestFinished(() => manager.dispose())
  const run = () => 'done'
  manager.launch({ subagentName: 's', goalPrompt: 'g' }, run)
  manager.launch({ subagentName: 's', goalPrompt: 'g' }, { run: { run, takesMessages: true } })
  expect(warn).not.toHaveBeenCalled()
})

it('a function with flags keeps them, alone and in a definition, and the process is warned once', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const taken: string[] = []
  const manager = new AsyncTaskManager()
  onTestFinished(() => manager.dispose())
  const retry = { attempts: 2, on: ['interrupted'] } as const
  const ids = [flagged(taken), { run: flagged(taken), retry }].map(
    (runner) => manager.launch({ subagentName: 's', goalPrompt: 'g' }, runner).id,
  )
  for (const id of ids) expect(manager.sendToTask(id, id)).toEqual({ sent: true })
  await tick()
  expect(taken).toEqual(ids)
  const tasks = createAgentTasks({ subagents: { reader: flagged(taken) } })
  onTestFinished(() => tasks.dispose())
  await tasks.tools.task.execute({ subagent_name: 'reader', goal_prompt: 'g', async: true })
  const [task] = tasks.getAsyncTaskManager().getRunningTasks()
  expect(tasks.getAsyncTaskManager().sendToTask(task?.id ?? '', 'hello')).toEqual({ sent: true })
  await tick()
  expect(warn.mock.calls).toEqual([
    [
      'Properties of a function that a task runs (takesMessages) will be ignored by the next version: write { run, takesMessages }.',
      { type: 'DeprecationWarning', code: 'AGENT_TASKS_RUNNER_FLAGS' },
    ],
  ])
})
