/** The tools of a host belong to the agent of its owner: they neither show nor change the tasks of others. */
import { expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type AgentTasks } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'

const subagents = {
  research: ({ goal }: { goal: string }) => ({ final_message: `found ${goal}` }),
}

const textOf = ({ llmContent }: { readonly llmContent: unknown }): string => String(llmContent)

async function calls(host: AgentTasks, id: string): Promise<string[]> {
  const { check_async_tasks: check, send_to_task: send, wait_for_async_tasks: wait } = host.tools
  return [
    textOf(await check.execute({})),
    textOf(await check.execute({ task_id: id })),
    textOf(await check.execute({ task_id: id, action: 'cancel' })),
    textOf(await send.execute({ task_id: id, message: 'go on' })),
    textOf(await wait.execute({ task_ids: [id] })),
    textOf(await wait.execute({})),
  ]
}

it.each([
  { of: 'main', by: 'eve' },
  { of: 'eve', by: undefined },
])('U1: a host of $by sees, takes, cancels and continues no task of $of, also after a restart', async ({ of, by }) => {
  const store = memoryStore()
  const first = createAgentTasks({ store, subagents, owner: of })
  const completed = new Promise((resolve) => first.manager.onTaskCompleted(resolve))
  const goal = { subagentName: 'research', goalPrompt: 'a secret', owner: of }
  const ended = first.manager.launch(goal, () => ({ final_message: 'a secret was found' }))
  await completed
  await first.manager.stored()
  expect(textOf(await first.tools.check_async_tasks.execute({ task_id: ended.id }))).toContain('a secret')
  await first.dispose()
  const second = createAgentTasks({ store, subagents, ...(by !== undefined && { owner: by }) })
  onTestFinished(() => second.dispose())
  await second.recovered
  for (const text of await calls(second, ended.id)) expect(text).not.toContain('secret')
  expect(second.manager.getTask(ended.id)).toMatchObject({ status: 'completed', owner: of })
  expect(second.manager.getAllTasks()).toHaveLength(1)
})

it('U1: a host sees the tasks that runs of its own tasks have launched', async () => {
  const host = createAgentTasks({
    owner: 'eve',
    subagents: {
      parent: (_request, { launch }) => ({
        final_message: launch({ subagentName: 'child', goalPrompt: 'of the child' }, () => ({})).id,
      }),
    },
  })
  onTestFinished(() => host.dispose())
  const { final_message: child } = await host.launch('parent', 'go').result
  expect(textOf(await host.tools.check_async_tasks.execute({ task_id: child }))).toContain('of the child')
})
