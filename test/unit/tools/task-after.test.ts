/** The tools that launch tasks which run after others: F15. */
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
  const createId = (prefix: string): string => `${prefix}-${++last}`
  const tasks = createAgentTasks({
    clock,
    createId,
    maxAsyncTasks: 3,
    subagents: { a: subagent },
    graceMs: 0,
    commands: { allow: [process.execPath] },
    ...options,
  })
  onTestFinished(async () => {
    const disposal = tasks.dispose()
    clock.advance(10_000)
    await disposal
  })
  const call = (goal: string, more: object = {}) =>
    tasks.tools.task.execute({ subagent_name: 'a', goal_prompt: goal, async: true, ...more })
  const launched = async (goal: string, more: object = {}) => String((await call(goal, more)).metadata?.['agentId'])
  return { ...tasks, clock, runs, call, launched }
}

describe('the tool task with after', () => {
  it('F15: launches a task that waits, says for which, and gives its subagent their results', async () => {
    const { call, launched, runs, tools, commands, manager } = setUp()
    const first = await launched('first')
    await settle()
    const { llmContent, metadata } = await call('second', { after: [first] })
    const second = String(metadata?.['agentId'])
    expect(llmContent).toBe(
      `Async task queued: subagent 'a' (ID: ${second}). It waits for ${first}, and starts by itself. Its result will be delivered to you when it has ended: do not poll for it.`,
    )
    expect(metadata).toMatchObject({ async: true, status: 'queued', waitsFor: [first] })
    expect((await tools.check_async_tasks.execute({})).llmContent).toMatch(/queued \(.*\), waits for \S+ - second/)
    expect(runCommandLine(commands, '/tasks')?.text).toMatch(/\[QUEUED\] .*, waits for \S+\) - second/)
    const details = await tools.check_async_tasks.execute({ task_id: second })
    expect(details.metadata).toMatchObject({ after: [first], waitsFor: [first] })
    expect(details.metadata).not.toHaveProperty('queuePosition')
    expect((await tools.check_async_tasks.execute({ task_id: first })).metadata).toMatchObject({ neededBy: [second] })
    runs[0]?.finish({ final_message: 'found it' })
    await settle()
    const { input } = (await runs[1]?.started) ?? {}
    expect(input).toMatchObject({
      goal: 'second',
      results: { [first]: { status: 'completed', output: { final_message: 'found it' } } },
    })
    expect(input).not.toHaveProperty('after')
    expect((await tools.check_async_tasks.execute({})).llmContent).not.toContain('waits for')
    runs[1]?.finish({})
    await settle()
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 0, reservations: 0 })
  })

  it('F15: takes the beginning of an id, and queues also when every slot is taken', async () => {
    const { launched, call, manager, tools } = setUp({ maxAsyncTasks: 1 })
    const first = await launched('first')
    expect((await call('refused')).error?.type).toBe('limit_reached')
    const result = await call('second', { after: ['a-'], on_failed_dependency: 'run' })
    expect(result.error).toBeUndefined()
    const second = String(result.metadata?.['agentId'])
    expect(manager.getTask(second)?.after).toEqual([first])
    await tools.check_async_tasks.execute({ task_id: first, action: 'cancel' })
    await settle()
    expect(manager.getTask(second)?.status).toBe('queued')
  })

  it('F15: refuses by name what it cannot wait for, and a call that is not async', async () => {
    const { call, launched, manager } = setUp()
    const first = await launched('first')
    await launched('other')
    const before = manager.getAllTasks().length
    const messageOf = async (more: object) => (await call('second', more)).error?.message
    expect(await messageOf({ after: [first, 'nobody'] })).toBe(
      'params.after[1]: got "nobody", expected the id of a task that is kept; you have none with this id.',
    )
    expect(await messageOf({ after: ['a'] })).toMatch(
      /^params\.after\[0\]: got "a", expected the id of one task; 2 tasks/,
    )
    expect(await messageOf({ after: [first], async: false })).toMatch(
      /^params\.after: .*nothing without async: true\.$/,
    )
    expect(await messageOf({ after: [first], on_failed_dependency: 'ignore' })).toMatch(/on_failed_dependency/)
    expect(manager.getAllTasks()).toHaveLength(before)
    expect(manager.actor.getSnapshot()).toMatchObject({ reservations: 0 })
  })

  it('F15: says that a task has failed at once, because one that it names had', async () => {
    const { call, launched, runs } = setUp()
    const first = await launched('first')
    await settle()
    runs[0]?.fail(new Error('no luck'))
    await settle()
    const { llmContent, metadata } = await call('second', { after: [first] })
    expect(llmContent).toMatch(
      /^Async task launched: .* It has failed: The task was not started, because task a-\d+ \(/,
    )
    expect(metadata).toMatchObject({ status: 'failed' })
  })
})

describe('the tool run_command with after', () => {
  it('F15: starts its program when they have ended, and needs async: true', async () => {
    const { tools, launched, runs, manager } = setUp()
    const first = await launched('first')
    await settle()
    const program = { command: process.execPath, args: ['-e', ''] }
    expect((await tools.run_command.execute({ ...program, after: [first] })).error?.message).toMatch(/without async/)
    const result = await tools.run_command.execute({ ...program, async: true, after: [first] })
    expect(result.llmContent).toMatch(new RegExp(`^Async task queued: command .* It waits for ${first}, and starts`))
    const id = String(result.metadata?.['agentId'])
    expect(manager.registry.pools.command.inUse).toBe(0)
    runs[0]?.finish({})
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    expect(manager.getTask(id)).toMatchObject({ exitCode: 0, after: [first] })
  })
})

describe('an MCP client', () => {
  it('F15: launches a task that waits for its own, and for no other client’s', async () => {
    const { call } = setUpApp({ a: () => new Promise(() => undefined) })
    const launch = (of: typeof ALICE, after: readonly string[]) =>
      call('task', { subagent_name: 'a', goal_prompt: 'g', async: true, after }, {}, of)
    const contentOf = ({ result }: Awaited<ReturnType<typeof launch>>) =>
      result['structuredContent'] as Record<string, string>
    const first = contentOf(await launch(ALICE, []))['task_id'] ?? ''
    expect(contentOf(await launch(ALICE, [first]))).toMatchObject({ status: 'queued', async: true })
    const refused = await launch(BOB, [first])
    expect(JSON.stringify(refused.result)).toMatch(/params\.after\[0\]: got .*you have none with this id/)
    expect(refused.result['isError']).toBe(true)
  })
})
