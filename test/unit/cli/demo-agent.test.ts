/** The agent of the demo: what it shows, on a clock of the test. */
import { expect, it, onTestFinished } from 'vitest'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { InstanceManager, TaskManager } from 'agent-tasks/server'
import { createDemoAgent } from '../../../src/cli/demo-agent.js'
import { createPacedClock } from '../../support/paced-clock.js'

async function withDemo() {
  const clock = createPacedClock(1_000_000)
  const instances = new InstanceManager()
  const taskManager = new TaskManager({ instances, clock })
  const agent = createDemoAgent(taskManager, clock)
  onTestFinished(async () => {
    await agent.dispose()
    await taskManager.dispose()
    await instances.dispose()
  })
  const manager = agent.tasks.getAsyncTaskManager()
  const all = new Map<string, AsyncTaskInfo>()
  const subscription = manager.transitions$.subscribe(({ taskId, record }) => void all.set(taskId, record))
  onTestFinished(() => subscription.unsubscribe())
  await clock.advance(0)
  for (const record of manager.getAllTasks()) if (!all.has(record.id)) all.set(record.id, record)
  const advance = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at += 1) await clock.advance(1000)
  }
  const of = (name: string): AsyncTaskInfo[] => [...all.values()].filter(({ subagentName }) => subagentName === name)
  return { agent, manager, clock, advance, of }
}

it('has a task of each kind within some minutes, and each ends as it should', async () => {
  const { manager, advance, of } = await withDemo()
  await advance(20)
  const [deployment] = of('deployer')
  const question = manager.getTask(deployment!.id)?.questions?.[0]
  expect(question?.message).toContain('Where should this be deployed')
  manager.answerTask(deployment!.id, question!.id, {
    action: 'accept',
    content: { environment: 'staging', machines: 2, dryRun: true },
  })
  await advance(200)
  expect(of('deployer')[0]).toMatchObject({
    status: 'completed',
    output: { final_message: 'Deployed to staging.', emitted_vars: { machines: 2 } },
  })
  expect(of('researcher').filter(({ goalPrompt }) => goalPrompt.startsWith('Every 20 s')).length).toBeGreaterThan(3)
  expect(of('painter')[0]).toMatchObject({ status: 'completed', output: { content: [{ type: 'image' }] } })
  expect(of('tester')[0]).toMatchObject({ status: 'failed', error: '1 of 128 tests failed: a parcel arrives once' })
  const planner = of('planner')[0]!
  expect(planner).toMatchObject({ status: 'completed', output: { final_message: 'The plan has two parts.' } })
  expect(of('researcher').filter(({ parentId }) => parentId === planner.id)).toHaveLength(2)
  expect(of('researcher').find(({ owner }) => owner === 'reviewer')).toMatchObject({
    status: 'completed',
    delivery: 'owed',
  })
  expect(of('researcher').some(({ delivery }) => delivery === 'delivered')).toBe(true)
  // The next one asks again; a refusal deploys nothing.
  const second = manager.getActiveTasks().find(({ subagentName }) => subagentName === 'deployer')!
  manager.answerTask(second.id, second.questions![0]!.id, { action: 'decline' })
  await advance(1)
  expect(of('deployer').find(({ id }) => id === second.id)?.output).toEqual({
    final_message: 'Nothing was deployed: nobody said where.',
  })
})

it('stops with everything that it has started', async () => {
  const { agent, manager, clock, advance, of } = await withDemo()
  await advance(8)
  expect(manager.getActiveTasks().length).toBeGreaterThan(0)
  await agent.dispose()
  expect(manager.getActiveTasks()).toEqual([])
  expect(of('researcher').some(({ status }) => status === 'cancelled')).toBe(true)
  expect(clock.pending).toBe(0)
})
