/** The schema of a subagent's context: each way to launch checks it once, and refuses what does not match before a task is registered. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createAgentTasks, defineSubagent, type AgentTasks, type RunContext, type SubagentRequest } from 'agent-tasks'
import { memoryStore } from 'agent-tasks/store'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { ALICE, send, setUpApp, TASKS } from '../mcp/wire.js'
import { settle } from './launched-tasks.js'
import { InvalidInputError } from '../../../src/errors.js'

/** A schema that changes what it checks, and that counts its checks. */
function schemaOfArea() {
  const checks = vi.fn((width: number) => `${width} cm`)
  return { checks, contextSchema: z.object({ width: z.number().transform(checks), unit: z.string().default('cm') }) }
}

function setUp(options: Parameters<typeof createAgentTasks>[0] = {}) {
  const contexts: unknown[] = []
  const { checks, contextSchema } = schemaOfArea()
  const note = ({ context }: Pick<SubagentRequest, 'context'>): string => {
    contexts.push(context)
    return 'done'
  }
  const launched: unknown[] = []
  const parent = (_request: unknown, { launch }: RunContext): undefined => {
    for (const width of ['wrong', 4]) {
      try {
        launched.push(launch({ subagentName: 'area', goalPrompt: 'x', context: { width } }).subagentName)
      } catch (error) {
        launched.push((error as Error).message)
      }
    }
  }
  // Without the types of the subagents, because the tests pass what the compiler refuses.
  const tasks: AgentTasks = createAgentTasks({
    schedules: {},
    ...options,
    subagents: {
      area: defineSubagent({ description: 'Computes an area.', contextSchema, run: note }),
      plain: note,
      parent,
      ...options.subagents,
    },
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, manager: tasks.manager, contexts, checks, launched }
}

const WRONG = 'input.context.width: got "wrong", expected a number.'
const WRONG_PARAMETER = WRONG.replace('input', 'params')

describe('tasks.launch', () => {
  it('passes on what the schema returns, and refuses another context before it registers a task', async () => {
    const { tasks, manager, contexts, checks } = setUp()
    const launch = (options?: object) => () => tasks.launch('area', 'x', options)
    expect(launch({ context: { width: 'wrong' } })).toThrow(InvalidInputError)
    expect(launch({ context: { width: 'wrong' } })).toThrow(WRONG)
    expect(launch()).toThrow('input.context.width: got undefined, expected a number.')
    expect(launch({ context: 5 })).toThrow('input.context: got 5, expected an object.')
    expect(launch({ params: { context: { width: 2 } } })).toThrow('input.params: got')
    expect(manager.getAllTasks()).toEqual([])
    await launch({ context: { width: 2 } })().result
    await tasks.launch('plain', 'x', { context: { any: 1 }, cwd: '/' }).result
    expect(contexts).toEqual([{ width: '2 cm', unit: 'cm' }, { any: 1 }])
    expect(checks).toHaveBeenCalledOnce()
  })

  it('refuses a context that the schema nests too deeply', () => {
    let deep: unknown = {}
    for (let level = 0; level < 120; level += 1) deep = { deep }
    const contextSchema = z.object({}).transform(() => ({ deep }))
    const { tasks, manager } = setUp({ subagents: { area: { contextSchema, run: () => 'done' } } })
    expect(() => tasks.launch('area' as never, 'x')).toThrow(
      /^input\.context: .* a value nested at most 100 levels deep/,
    )
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('the tool task', () => {
  it.each([false, true])('refuses a context that does not match; async: %s', async (async) => {
    const { tasks, manager, contexts } = setUp({ maxAsyncTasks: 1 })
    const call = (context?: object) =>
      tasks.tools.task.execute({ subagent_name: 'area', goal_prompt: 'x', async, context: context as never })
    expect(await call({ width: 'wrong' })).toEqual({
      llmContent: `Invalid parameters for task: ${WRONG_PARAMETER}`,
      returnDisplay: `Invalid parameters: ${WRONG_PARAMETER}`,
      error: { type: 'parameter_validation', message: WRONG_PARAMETER },
    })
    expect((await call()).error?.type).toBe('parameter_validation')
    expect(manager.getAllTasks()).toEqual([])
    // The slot of the refused call is free again.
    expect((await call({ width: 2 })).error).toBeUndefined()
    await expect.poll(() => contexts).toEqual([{ width: '2 cm', unit: 'cm' }])
  })

  it('checks a subagent that resolveSubagent finds', async () => {
    const { contextSchema } = schemaOfArea()
    const { tasks } = setUp({ resolveSubagent: () => ({ run: { contextSchema, run: () => 'done' } as never }) })
    const found = await tasks.tools.task.execute({
      subagent_name: 'found',
      goal_prompt: 'x',
      context: { width: 'wrong' },
    })
    expect(found.error).toEqual({ type: 'parameter_validation', message: WRONG_PARAMETER })
  })

  it('lists the schemas, after all names, as far as there is room', () => {
    const large = z.object({ note: z.string().describe('x'.repeat(5000)) })
    const foreign = { safeParse: () => ({ success: true }) } as never
    const { tasks } = setUp({
      subagents: {
        large: { contextSchema: large, run: () => 'done' },
        foreign: { contextSchema: foreign, run: () => 'done' },
        last: { contextSchema: z.object({ a: z.string() }), run: () => 'done' },
      },
    })
    const { description } = tasks.tools.task
    expect(description.split('\n').slice(1)).toEqual([
      'Subagents:',
      '- area: Computes an area.',
      '- plain',
      '- parent',
      '- large',
      '- foreign',
      '- last',
      'The context of a subagent, as JSON Schema:',
      '- area: {"type":"object","properties":{"width":{"type":"number"},"unit":{"default":"cm","type":"string"}},"required":["width"]}',
      '- last: {"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}',
    ])
  })
})

describe('an MCP client', () => {
  it('gets the schemas that fit into 14 kB of definitions, and is refused like a host', async () => {
    const run = () => 'done'
    const large = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [`field_${at}`, z.string().describe('x'.repeat(300))]),
    )
    const subagents = {
      large: { contextSchema: z.object(large), run },
      ...Object.fromEntries(
        Array.from({ length: 200 }, (_, at) => [`area${at}`, { contextSchema: z.object({ width: z.number() }), run }]),
      ),
    }
    const { app, call } = setUpApp(subagents)
    onTestFinished(() => app.close())
    const { tools } = (await send(app, ALICE, 'tools/list')).result as {
      tools: { name: string; description: string }[]
    }
    const { description } = tools.find(({ name }) => name === 'task')!
    expect(description).toContain(
      '- area0: {"type":"object","properties":{"width":{"type":"number"}},"required":["width"]}',
    )
    expect(description).not.toContain('field_1')
    const bytes = Buffer.byteLength(JSON.stringify(tools))
    expect([bytes > 13_000, bytes <= 14_000]).toEqual([true, true])
    const params = { subagent_name: 'area0', goal_prompt: 'x', context: { width: 'wrong' } }
    for (const capabilities of [{}, TASKS]) {
      const { result } = await call('task', params, capabilities)
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: `Invalid parameters for task: ${WRONG_PARAMETER}` }],
      })
    }
  })
})

describe('other launches', () => {
  it('of a run are checked', async () => {
    const { tasks, contexts, launched } = setUp()
    await tasks.launch('parent', 'x').result
    expect(launched).toEqual([WRONG, 'area'])
    await expect.poll(() => contexts).toEqual([{ width: '4 cm', unit: 'cm' }])
  })

  it('of a schedule are checked when it is made, and each firing gets what the schema returns', async () => {
    const clock = createManualClock(Date.UTC(2026, 0, 1))
    const { tasks, contexts } = setUp({ clock })
    const schedule = (context: Record<string, unknown>) => () =>
      tasks.schedule({ every: 10_000, launch: { subagent: 'area', goal: 'x', context } })
    expect(schedule({ width: 'wrong' })).toThrow('input.launch.context.width: got "wrong", expected a number.')
    expect(tasks.schedules()).toEqual([])
    schedule({ width: 3 })()
    for (const _ of [1, 2]) {
      clock.advance(10_000)
      await settle()
    }
    expect(contexts).toEqual([
      { width: '3 cm', unit: 'cm' },
      { width: '3 cm', unit: 'cm' },
    ])
    const result = await (
      tasks as unknown as { tools: Record<string, { execute(input: object): Promise<object> }> }
    ).tools['schedule']!.execute({ in_seconds: 1, subagent_name: 'area', goal_prompt: 'x' })
    expect(result).toMatchObject({
      error: {
        type: 'parameter_validation',
        message: 'params.subagent_name: "area" needs a context, which a scheduled task does not have.',
      },
    })
  })

  it('continue a task without a context', async () => {
    const { tasks, contexts } = setUp()
    const { id } = await launchedArea(tasks)
    await tasks.continue(id, 'go on').result
    expect(contexts).toEqual([{ width: '2 cm', unit: 'cm' }, undefined])
  })
})

async function launchedArea(tasks: ReturnType<typeof setUp>['tasks']) {
  const handle = tasks.launch('area', 'x', { context: { width: 2 } })
  await handle.result
  return handle
}

describe('a repeated run', () => {
  it('gets the checked context, also after a crash, and the schema does not check it again', async () => {
    const store = memoryStore()
    const contexts: unknown[] = []
    const { checks, contextSchema } = schemaOfArea()
    const subagents = {
      area: defineSubagent({
        contextSchema,
        durable: true,
        retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 100 } },
        run: async ({ context }, { attempt, step, signal }) => {
          contexts.push(context)
          await step('one', () => 1)
          if (attempt === 1) throw Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' })
          return new Promise<string>((_, reject) =>
            signal.addEventListener('abort', () => reject(new Error('stopped'))),
          )
        },
      }),
    }
    const clock = createManualClock()
    const first = createAgentTasks({ clock, store, subagents })
    first.launch('area', 'x', { context: { width: 2 } })
    await expect.poll(() => contexts).toHaveLength(1)
    await settle()
    clock.advance(1000)
    await expect.poll(() => contexts).toHaveLength(2)
    const second = createAgentTasks({ clock, store: store.copy(), subagents })
    onTestFinished(() => second.dispose())
    onTestFinished(() => first.dispose())
    await expect.poll(() => contexts).toHaveLength(3)
    expect(contexts).toEqual(Array(3).fill({ width: '2 cm', unit: 'cm' }))
    expect(checks).toHaveBeenCalledOnce()
  })
})
