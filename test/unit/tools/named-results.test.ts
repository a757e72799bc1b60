/** Each text about the end of a task says what the task was: its subagent and its goal, in the line above its JSON. */
import { afterEach, describe, expect, it } from 'vitest'
import { createAgentTasks, type AgentTasks } from '../../../src/index.js'
import { taskName } from '../../../src/async-tasks/task-name.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'

const hosts: AgentTasks[] = []
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.dispose()))
})

function host(options: Parameters<typeof createAgentTasks>[0] = {}): AgentTasks {
  const tasks = createAgentTasks({ clock: createManualClock(), onError: () => undefined, ...options })
  hosts.push(tasks)
  return tasks
}

const GOAL = `dig\u001b[2J\r\nfor "gold"\n${'x'.repeat(5000)}`
const NAME = `subagent 'miner', goal "dig [2J for \\"gold\\" ${'x'.repeat(181)}..."`

describe('the name of a task', () => {
  it('is a part of one line, bounded, without control characters', () => {
    expect(taskName({ subagentName: 'miner', goalPrompt: GOAL })).toBe(NAME)
    const long = taskName({ subagentName: `a\n${'b'.repeat(1000)}`, goalPrompt: '' })
    expect(long).toBe(`subagent 'a ${'b'.repeat(98)}...', goal ""`)
  })
})

describe('a text about the end of a task', () => {
  function ended(status: 'completed' | 'failed' | 'cancelled'): AgentTasks {
    const tasks = host({ notifyCancelled: true })
    const manager = tasks.getAsyncTaskManager()
    manager.registerTask({ id: 'a', subagentName: 'miner', goalPrompt: GOAL })
    if (status === 'completed') manager.completeTask('a', { final_message: 'found' })
    else if (status === 'failed') manager.failTask('a', 'no luck')
    else manager.cancelTask('a')
    return tasks
  }

  const texts: Record<string, (tasks: AgentTasks) => string | undefined | Promise<string>> = {
    'a reminder': (tasks) => tasks.getAsyncTaskReminderService().generateReminder(),
    'a leased reminder': (tasks) => tasks.beforeTurn().reminder?.text,
    'a wait': async (tasks) => (await tasks.tools.wait_for_async_tasks.execute({ task_ids: ['a'] })).llmContent,
  }
  for (const [name, textOf] of Object.entries(texts)) {
    it.each(['completed', 'failed', 'cancelled'] as const)(`names the task: ${name}, %s`, async (status) => {
      const text = (await textOf(ended(status))) ?? ''
      const lines = text.split('\n')
      const at = lines.findIndex((line) => line.startsWith('{'))
      const above = lines.slice(0, at).filter((line) => !line.startsWith('```'))
      expect(above.at(-1)).toMatch(/^(Task|Output of task) a \(/)
      expect(above.at(-1)).toContain(NAME)
      expect(lines[at + 1]).toMatch(/^ {2}"agent_id": "a",/)
    })
  }

  it('has the JSON that formatCompletionNotification has, unchanged', () => {
    const tasks = ended('completed')
    const reminders = tasks.getAsyncTaskReminderService()
    const json = '{\n  "agent_id": "a",\n  "emitted_vars": {},\n  "final_message": "found"\n}'
    expect(reminders.formatCompletionNotification(tasks.getAsyncTaskManager().getTask('a')!)).toBe(json)
    expect(reminders.generateReminder()).toContain(`\n${json}\n`)
  })

  it('names the task: a result that is read in parts', async () => {
    const tasks = ended('completed')
    for (const input of [
      { action: 'output' as const },
      { action: 'output' as const, part: 'result' as const },
      { cursor: 0 },
    ]) {
      const { llmContent } = await tasks.tools.check_async_tasks.execute({ task_id: 'a', ...input })
      expect(llmContent.split('\n')[0]).toContain(NAME)
    }
  })

  it('K7: says what to launch again after a crash', async () => {
    const store = memoryStore()
    const manager = host({ store }).getAsyncTaskManager()
    manager.registerTask({ id: 'a', subagentName: 'miner', goalPrompt: GOAL })
    await manager.stored()
    const record = host({ store: store.copy() }).getAsyncTaskManager().getTask('a')
    expect(record?.error).toBe(
      `The process that ran this task (${NAME}) ended before the task did. Launch it again if its result is still needed.`,
    )
  })
})
