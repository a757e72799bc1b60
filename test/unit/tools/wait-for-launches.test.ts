/** wait_for_async_tasks without ids, beside calls that are still launching tasks: models make such calls in one step. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { pendingLaunches } from '../../../src/async-tasks/pending-launches.js'
import { createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { defineTool } from '../../../src/tools/tool.js'
import { deferred, settle } from './tool-host.js'

const echo = ({ goal }: { goal: string }) => `echo ${goal}`

const untilAborted = (_request: unknown, { signal }: { readonly signal: AbortSignal }): Promise<string> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

/** A host whose subagents are found when the test says so. */
function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const lookup = deferred<typeof echo | typeof untilAborted | undefined>()
  const tasks = createAgentTasks({ clock, graceMs: 0, resolveSubagent: () => lookup.promise, ...options })
  onTestFinished(async () => {
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })
  const launch = (goal_prompt: string, signal?: AbortSignal) =>
    tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt, async: true }, { signal })
  const wait: typeof tasks.tools.wait_for_async_tasks.execute = (input, context) =>
    tasks.tools.wait_for_async_tasks.execute(input, context)
  const pending = (owner?: string) => tasks.manager.reads.use(pendingLaunches).settled(owner)
  return { clock, lookup, tasks, launch, pending, wait }
}

describe('a wait without ids beside launches', () => {
  it('waits for what they launch, and nothing is left', async () => {
    const { lookup, launch, wait, pending } = setUp()
    const launched = [launch('one'), launch('two')]
    const waiting = wait({})
    await settle()
    lookup.resolve(echo)
    const { llmContent } = await waiting
    expect(llmContent).toContain('2 of 2 async task(s) ended:')
    expect(llmContent).toContain('echo one')
    expect(llmContent).toContain('echo two')
    await Promise.all(launched)
    expect(pending()).toBeUndefined()
  })

  it('says that there is nothing to wait for when they are refused', async () => {
    const { lookup, launch, wait } = setUp()
    void launch('one')
    const waiting = wait({})
    lookup.resolve(undefined)
    expect((await waiting).llmContent).toBe('Nothing to wait for: no async task is running.')
  })

  it('ends at its time limit, of which it has used some when the launch is made', async () => {
    const { clock, lookup, launch, wait } = setUp()
    void launch('one')
    const short = wait({ timeout_seconds: 5 })
    const long = wait({ timeout_seconds: 20 })
    await settle()
    clock.advance(5000)
    expect((await short).llmContent).toContain('Nothing to wait for')
    clock.advance(10_000)
    lookup.resolve(untilAborted)
    await settle()
    clock.advance(5000)
    expect((await long).llmContent).toContain('0 of 1 async task(s) ended within 20 s.')
  })

  it('is aborted by its signal, and leaves no listener', async () => {
    const { launch, wait, lookup } = setUp()
    void launch('one')
    const controller = new AbortController()
    const waiting = wait({}, { signal: controller.signal })
    await settle()
    controller.abort()
    expect((await waiting).error?.type).toBe('aborted')
    lookup.resolve(undefined)
    await settle()
  })

  it('does not wait for a launch that begins after it, nor for those of another owner', async () => {
    const { lookup, launch, wait, tasks } = setUp()
    const waiting = wait({})
    void launch('late')
    expect((await waiting).llmContent).toContain('Nothing to wait for')
    const other = tasks.toolsOfRun('nobody').wait_for_async_tasks
    expect((await other.execute({})).llmContent).toContain('Nothing to wait for')
    lookup.resolve(undefined)
    await settle()
  })

  it('waits for the calls of a tool that runs in the background', async () => {
    const { tasks, wait } = setUp()
    const search = tasks.background(
      defineTool({
        name: 'search',
        description: 'Searches.',
        inputSchema: z.strictObject({}),
        run: () => ({ llmContent: 'found', returnDisplay: 'found' }),
      }),
      { mode: 'always' },
    )
    const called = search.execute({})
    expect((await wait({})).llmContent).toContain('found')
    await called
  })
})
