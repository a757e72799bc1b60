/** The tools that launch tasks with a key, and what they and lists say of what waits: F18. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, runCommandLine, type RunContext, type SubagentRequest } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { ALICE, BOB, setUpApp } from '../mcp/wire.js'
import { controlledRun, settle } from './tool-host.js'

function setUp(options: { readonly maxAsyncTasks?: number } = {}) {
  const clock = createManualClock(Date.UTC(2024, 0, 1))
  const runs: ReturnType<typeof controlledRun<SubagentRequest>>[] = []
  const subagent = (input: SubagentRequest, context: RunContext) => {
    const run = controlledRun<SubagentRequest>()
    runs.push(run)
    return run.run(input, context)
  }
  let last = 0
  const tasks = createAgentTasks({
    clock,
    createId: (prefix) => `${prefix}-${++last}`,
    maxAsyncTasks: 3,
    limits: { wide: 2 },
    subagents: {
      a: subagent,
      narrow: { run: subagent, maxConcurrent: 1 },
      rare: { run: subagent, rate: { limit: 1, perMs: 90_000 } },
    },
    graceMs: 0,
    commands: { allow: [process.execPath], maxCommands: 1 },
    ...options,
  })
  onTestFinished(async () => {
    const disposal = tasks.dispose()
    clock.advance(10_000)
    await disposal
  })
  const call = (subagent_name: string, more: object = {}) =>
    tasks.tools.task.execute({ subagent_name, goal_prompt: 'goal', async: true, ...more })
  return { ...tasks, clock, runs, call }
}

describe('the tool task with concurrency_key', () => {
  it('F18: launches a task that waits for its turn, and says for what', async () => {
    const { call, runs, tools, commands, manager } = setUp()
    await call('a', { concurrency_key: 'deploy' })
    const { llmContent, metadata } = await call('a', { concurrency_key: 'deploy' })
    const id = String(metadata?.['agentId'])
    expect(llmContent).toBe(
      `Async task queued: subagent 'a' (ID: ${id}). It waits for the key "deploy", and starts by itself. Its result will be delivered to you when it has ended: do not poll for it.`,
    )
    expect(metadata).toMatchObject({ async: true, status: 'queued', queuePosition: 1 })
    expect((await tools.check_async_tasks.execute({})).llmContent).toMatch(
      /queued \(.*\), waits for the key "deploy" - /,
    )
    expect(runCommandLine(commands, '/tasks')?.text).toMatch(/\[QUEUED\] .*, waits for the key "deploy"\) - goal/)
    const details = await tools.check_async_tasks.execute({ task_id: id })
    expect(details.metadata).toMatchObject({ concurrencyKey: 'deploy', waits: 'waits for the key "deploy"' })
    await settle()
    runs[0]?.finish({})
    await settle()
    expect(manager.getTask(id)?.status).toBe('running')
    expect((await tools.check_async_tasks.execute({ task_id: id })).metadata).not.toHaveProperty('waits')
    await settle()
    runs[1]?.finish({})
    await settle()
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 0, reservations: 0 })
  })

  it('F18: says which place of a subagent, which key with a limit, and how long for a rate', async () => {
    const { call, clock } = setUp()
    await call('narrow')
    expect((await call('narrow')).llmContent).toMatch(/It waits for a place of subagent "narrow" \(1 at once\), and/)
    await call('rare')
    clock.advance(500)
    expect((await call('rare')).llmContent).toMatch(/It waits 90 s for the rate of subagent "rare" \(1 per 90 s\), and/)
    const wide = setUp()
    await wide.call('a', { concurrency_key: 'wide' })
    await wide.call('a', { concurrency_key: 'wide' })
    expect((await wide.call('a', { concurrency_key: 'wide' })).llmContent).toMatch(/the key "wide" \(2 at once\), and/)
  })

  it('F18: queues also when every slot is taken, and refuses a malformed key', async () => {
    const { call, manager } = setUp({ maxAsyncTasks: 1 })
    await call('a')
    expect((await call('a')).error?.type).toBe('limit_reached')
    const result = await call('a', { concurrency_key: 'deploy' })
    expect(result.metadata).toMatchObject({ status: 'queued' })
    expect(result.llmContent).toMatch(/No slot is free: it is number 1 in the queue/)
    expect((await call('a', { concurrency_key: '' })).error?.message).toMatch(/concurrency_key/)
    expect((await call('a', { concurrency_key: 'a\nb' })).error?.message).toMatch(/concurrency_key/)
    expect(manager.getAllTasks()).toHaveLength(2)
  })

  it('F18: a call that waits for its task waits for its turn, too', async () => {
    const { call, runs, manager } = setUp()
    await call('a', { concurrency_key: 'deploy' })
    const inPlace = call('a', { concurrency_key: 'deploy', async: false })
    await settle()
    expect(manager.getQueuedTasks()).toMatchObject([{ isForeground: true, concurrencyKey: 'deploy' }])
    runs[0]?.finish({})
    await settle()
    runs[1]?.finish({ final_message: 'my turn' })
    expect((await inPlace).llmContent).toContain('my turn')
    expect(manager.registry.limits.size).toBe(0)
  })
})

describe('the tool run_command with concurrency_key', () => {
  it('F18: starts its program when it is its turn', async () => {
    const { tools, call, runs, manager } = setUp()
    await call('a', { concurrency_key: 'deploy' })
    await settle()
    const program = { command: process.execPath, args: ['-e', ''], async: true }
    const result = await tools.run_command.execute({ ...program, concurrency_key: 'deploy' })
    expect(result.llmContent).toMatch(/^Async task queued: command .* It waits for the key "deploy", and starts/)
    const id = String(result.metadata?.['agentId'])
    expect(manager.registry.pools.command.inUse).toBe(0)
    runs[0]?.finish({})
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
  })
})

describe('MCP clients', () => {
  it('F18: share the keys, and no client reads of the task of another one', async () => {
    const { call } = setUpApp({ a: () => new Promise(() => undefined) })
    const launch = async (of: typeof ALICE) => {
      const input = { subagent_name: 'a', goal_prompt: 'g', async: true, concurrency_key: 'deploy' }
      const { result } = await call('task', input, {}, of)
      return { content: result['structuredContent'] as Record<string, string>, text: JSON.stringify(result) }
    }
    const first = await launch(ALICE)
    const second = await launch(BOB)
    expect(second.content).toMatchObject({ status: 'queued' })
    expect(second.text).toMatch(/It waits for the key \\+"deploy\\+"/)
    expect(second.text).not.toContain(first.content['task_id'])
  })
})
