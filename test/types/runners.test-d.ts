/** What is accepted as a runner, and as a subagent: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import {
  AsyncTaskManager,
  createAgentTasks,
  defineSubagent,
  functionRunner,
  processRunner,
  TaskTool,
  type AgentTasks,
  type OutputRunner,
  type RunContext,
  type RunFunction,
  type RunInput,
  type Runner,
  type RunnerDefinition,
  type Subagent,
  type SubagentRequest,
} from 'agent-tasks'
import { bullmqRunner, startWorker } from 'agent-tasks/bullmq'
import { startMcpHttpServer, startMcpStdioServer } from 'agent-tasks/mcp'
import { createTaskTool } from 'agent-tasks/tools'
import { engineContract } from 'agent-tasks/testing'

const program = processRunner({ command: 'make' })
const retry = { attempts: 2, on: ['interrupted'] } as const

export function aSubagentIsAFunctionOrADefinition(): void {
  createAgentTasks({
    subagents: {
      text: () => 'text',
      later: async (request, context) => {
        expectTypeOf(request).toEqualTypeOf<SubagentRequest>()
        expectTypeOf(context).toEqualTypeOf<RunContext>()
        return Promise.resolve({ final_message: request.goal })
      },
      program: processRunner({ command: 'make' }),
      repeated: { run: processRunner({ command: 'make', survivesHost: true }), retry },
      described: { description: 'Builds it.', run: program, budget: { seconds: 1 } },
      fn: functionRunner(({ goal }) => goal, { takesMessages: true }),
      elsewhere: { run: bullmqRunner({ connection: 'redis://localhost', queue: 'q' }), retry },
      reader: {
        takesMessages: true,
        run: async ({ goal }, { messages }) => {
          for await (const message of messages) return `${goal}: ${message}`
          return undefined
        },
      },
      nested: { run: { run: program, retry }, budget: { steps: 1 } },
    },
    resolveSubagent: (name) => (name === 'a' ? { run: program, retry } : name === 'b' ? program : () => 'text'),
    findRunner: () => ({ run: program, retry }),
  })
  // @ts-expect-error a number is no result
  createAgentTasks({ subagents: { a: () => 42 } })
  // @ts-expect-error it needs a run
  createAgentTasks({ subagents: { a: { retry } } })
  // @ts-expect-error a flag is a boolean
  createAgentTasks({ subagents: { a: { run: program, survivesHost: 'yes' } } })
}

export function itIsTheSameEverywhere(manager: AsyncTaskManager, context: RunContext): void {
  const input = { subagentName: 's', goalPrompt: 'g' }
  for (const runner of [program, { run: program, retry }, () => 'text']) {
    manager.launch(input, runner)
    context.launch(input, runner)
    new AsyncTaskManager({ findRunner: () => runner })
  }
  manager.launch(input, async ({ goal }, { signal }) => (signal.aborted ? undefined : goal))
  manager.launch(input, { run: async ({ goal }) => Promise.resolve(goal), takesMessages: true })
  const subagents = {
    a: () => 'text',
    b: program,
    c: { run: program, retry },
    d: { run: () => 'text', description: 'd' },
  }
  void startMcpStdioServer({ subagents })
  void startMcpHttpServer({ subagents })
  void startWorker({ connection: 'redis://localhost', subagents })
  void startWorker({
    connection: 'redis://localhost',
    subagents: { a: ({ goal, context = {} }) => `${goal}${Object.keys(context).join()}` },
  })
  const getAsyncTaskManager = () => manager
  createTaskTool({ getAsyncTaskManager, resolveSubagent: () => program })
  new TaskTool({ getAsyncTaskManager, resolveSubagent: () => Promise.resolve({ run: program, retry }) })
  engineContract(() => ({ manager, runnerOf: (run) => run, dispose: () => manager.dispose() }))
  engineContract(() => ({ manager, runnerOf: (run: Runner) => ({ run, retry }), dispose: () => manager.dispose() }))
}

export function itsTypesHaveNames(): void {
  const fn: RunFunction = () => 'text'
  const definition: RunnerDefinition = { run: fn, takesMessages: true }
  const runners: Record<string, Runner> = { fn, definition, program }
  const asSubagents: Record<string, Subagent> = runners
  expectTypeOf(asSubagents)
  expectTypeOf(program).toEqualTypeOf<OutputRunner>()
  expectTypeOf(program.run).parameters.toEqualTypeOf<[input: RunInput, context: RunContext]>()
  // A wrapper spreads what it wraps.
  const logged: Runner = { ...program, run: (input, context) => program.run(input, context) }
  expectTypeOf(logged).toExtend<Runner>()
  // @ts-expect-error a runner may be an object: its function is `run`
  void program(fn)
}

export function theContextHasTheTypeOfItsSchema(): void {
  const contextSchema = z.object({ width: z.number(), at: z.date().optional(), unit: z.string().default('cm') })
  const area = defineSubagent({
    description: 'Computes an area.',
    contextSchema,
    run: ({ context, goal }, { signal }) => {
      expectTypeOf(context.width).toEqualTypeOf<number>()
      expectTypeOf(context.unit).toEqualTypeOf<string>()
      // Plain data: a date becomes text.
      expectTypeOf(context.at).toEqualTypeOf<string | undefined>()
      expectTypeOf(goal).toEqualTypeOf<string>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return { square: context.width ** 2 }
    },
  })
  const tasks = createAgentTasks({ subagents: { area, repeated: { run: area, retry } } })
  const handle = tasks.launch('area', 'x', { context: { width: 2 } })
  expectTypeOf(handle.result).resolves.toEqualTypeOf<{ readonly square: number }>()
  // @ts-expect-error the schema asks for a number
  tasks.launch('area', 'x', { context: { width: 'two' } })
  // @ts-expect-error a context is an object
  tasks.launch('area', 'x', { context: 2 })
  // @ts-expect-error the schema asks for a width
  tasks.launch('area', 'x')
  // @ts-expect-error the schema asks for a width, also where a definition runs another one
  tasks.launch('repeated', 'x', { timeoutMs: 5 })
  tasks.launch('repeated', 'x', { context: { width: 2 } })
  tasks.launch('area', 'x', { timeoutMs: 5, context: { width: 2 } })
  const allOptional = defineSubagent({
    description: 'Takes a hint.',
    contextSchema: z.object({ hint: z.string().optional() }),
    run: () => 'text',
  })
  createAgentTasks({ subagents: { allOptional } }).launch('allOptional', 'x')
  const any: AgentTasks = tasks
  any.launch('area', 'x')
  // @ts-expect-error it needs a schema
  defineSubagent({ run: () => 'text' })
  // @ts-expect-error the schema has no such field
  defineSubagent({ contextSchema, run: ({ context }) => String(context.height) })
}
