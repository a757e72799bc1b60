/** What tools and commands show of tasks that wait, are repeated, or have a budget. */
import { expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, runCommandLine, type AgentTasksOptions } from '../../../src/index.js'
import { untilAborted } from '../../support/limited-tasks.js'

function agent(options: AgentTasksOptions = {}) {
  const tasks = createAgentTasks({
    maxAsyncTasks: 1,
    subagents: { slow: untilAborted },
    onError: () => undefined,
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  const launch = (subagent_name = 'slow') =>
    tasks.tools.task.execute({ subagent_name, goal_prompt: 'look', async: true })
  return { ...tasks, manager: tasks.getAsyncTaskManager(), launch }
}

it('F8: the tool task says that its task waits, and where; lists, details and /tasks show its place', async () => {
  const { launch, tools, commands, manager } = agent({ whenFull: 'queue' })
  await launch()
  const queued = await launch()
  const id = String(queued.metadata?.['agentId'])
  expect(queued.llmContent).toContain(
    `Async task queued: subagent 'slow' (ID: ${id}). No slot is free: it is number 1 in the queue, and starts by itself.`,
  )
  expect(queued.metadata).toMatchObject({ status: 'queued', async: true, queuePosition: 1 })
  const list = await tools.check_async_tasks.execute({})
  expect(list.llmContent).toContain('- Queued: 1\n- Running: 1')
  expect(list.llmContent).toMatch(/slow - queued \(0s\), number 1 in the queue - look/)
  expect((await tools.check_async_tasks.execute({ task_id: id })).metadata).toMatchObject({ queuePosition: 1 })
  expect(runCommandLine(commands, '/tasks')?.text).toMatch(
    /\[QUEUED\] \[.*\] slow \(0s, number 1 in the queue\) - look/,
  )
  expect(runCommandLine(commands, `/task end ${id}`)?.text).toBe(`Cancelled task: ${id}`)
  expect(manager.getQueuedTasks()).toEqual([])
})

it('F8: the tool task says when the queue is full', async () => {
  const { launch } = agent({ whenFull: 'queue', queue: { max: 1 } })
  await launch()
  await launch()
  const refused = await launch()
  expect(refused.error?.type).toBe('limit_reached')
  expect(refused.llmContent).toMatch(
    /^Max async tasks \(1\) reached, and the queue is full \(1 waiting, queue.max\)\. Wait until/,
  )
})

it('F8: the texts of a host that does not use it stay as they were', async () => {
  const { launch, tools } = agent()
  await launch()
  expect((await launch()).llmContent).toMatch(/^Max async tasks \(1\) reached\. Wait until/)
  expect((await tools.check_async_tasks.execute({})).llmContent).not.toContain('Queued')
})

it('F9: details show the earlier runs, and a failure the number of its run', async () => {
  const run = () => Promise.reject(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
  const retry = { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 1 } } as const
  const { tools, manager } = agent({ subagents: { flaky: { run, retry } } })
  const result = await tools.task.execute({ subagent_name: 'flaky', goal_prompt: 'try' })
  expect(result.llmContent).toContain('"attempt": 2')
  const [task] = manager.getAllTasks()
  const details = await tools.check_async_tasks.execute({ task_id: task?.id ?? '' })
  expect(details.metadata).toMatchObject({ attempt: 2, attempts: [{ number: 1, error: 'slow down' }] })
})

it('F10: messages, lists and details show what was spent, where there is something', async () => {
  const { tools, manager } = agent({
    subagents: {
      spender: {
        budget: { tokens: 5 },
        run: (_request, context) => {
          context.spend({ tokens: 3, cost: 0.5 })
          return {}
        },
      },
      thrifty: () => ({}),
    },
  })
  const spent = await tools.task.execute({ subagent_name: 'spender', goal_prompt: 'spend' })
  expect(spent.llmContent).toContain('"tokens": 3')
  expect((await tools.task.execute({ subagent_name: 'thrifty', goal_prompt: 'save' })).llmContent).not.toContain(
    'spent',
  )
  expect((await tools.check_async_tasks.execute({})).llmContent).toContain('spent 3 tokens, cost 0.5 - spend')
  const [task] = manager.getAllTasks()
  const details = await tools.check_async_tasks.execute({ task_id: task?.id ?? '' })
  expect(details.metadata).toMatchObject({ budget: { tokens: 5 }, spent: { tokens: 3, cost: 0.5 } })
})

it('F8: a wait for all tasks waits for those that are queued, and reminders count them', async () => {
  const { launch, tools, manager, getAsyncTaskReminderService } = agent({
    whenFull: 'queue',
    subagents: { quick: () => new Promise((resolve) => setTimeout(() => resolve({ final_message: 'looked' }), 5)) },
  })
  await launch('quick')
  const queued = await launch('quick')
  expect(getAsyncTaskReminderService().generateReminder()).toContain(
    '1 async task(s) still running.\n\n1 async task(s) waiting for a slot.',
  )
  const waited = await tools.wait_for_async_tasks.execute({})
  expect(waited.llmContent).toContain('2 of 2 async task(s) ended')
  expect(manager.getTask(String(queued.metadata?.['agentId']))?.status).toBe('completed')
})
