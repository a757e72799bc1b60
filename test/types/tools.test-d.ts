/** The types of `agent-tasks/tools`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type { Observable } from 'rxjs'
import { createAgentTasks, type AsyncTaskManager } from 'agent-tasks'
import type { TaskManager } from 'agent-tasks/server'
import {
  createCheckAsyncTasksTool,
  createRunCommandTool,
  createTaskTool,
  defineTool,
  type CheckAsyncTasksParams,
} from 'agent-tasks/tools'
import type { RunCommandParams } from '../../src/tools/run-command.js'
import type { TimeoutSetting, TimeoutSettings } from '../../src/tools/task-timeout.js'
import { TaskTool, type TaskParams } from '../../src/tools/task-tool.js'
import type { OutputUpdate, Tool, ToolContext, ToolInput, ToolResult } from '../../src/tools/tool.js'
import type { WaitForAsyncTasksParams } from '../../src/tools/wait-for-async-tasks.js'
import type { TaskOutputEvent } from '../../src/features/output/output-stream.js'

declare const getAsyncTaskManager: () => AsyncTaskManager

export function aToolKnowsItsInputFromItsSchema(): void {
  const inputSchema = z.object({ city: z.string(), days: z.number().default(3), unit: z.enum(['C', 'F']).optional() })
  const tool = defineTool({
    name: 'weather',
    description: 'The weather of a city.',
    inputSchema,
    describe: ({ city }) => {
      expectTypeOf(city).toEqualTypeOf<string>()
      return city
    },
    run: (input, context) => {
      expectTypeOf(input).toEqualTypeOf<{ city: string; days: number; unit?: 'C' | 'F' | undefined }>()
      expectTypeOf(context).toEqualTypeOf<ToolContext>()
      // @ts-expect-error the schema has no such field
      expectTypeOf(input.country)
      return { llmContent: input.city, returnDisplay: input.city }
    },
  })
  expectTypeOf(tool).toEqualTypeOf<Tool<typeof inputSchema>>()
  expectTypeOf(tool).toExtend<Tool>()
  expectTypeOf(tool.execute({ city: 'Berlin' })).toEqualTypeOf<Promise<ToolResult>>()
  // @ts-expect-error a city is required
  void tool.execute({})
  // @ts-expect-error the days are a number
  tool.describe({ city: 'Berlin', days: '3' })
}

export function theInputsOfTheToolsAreTyped(): void {
  const { tools } = createAgentTasks()
  expectTypeOf<Parameters<typeof tools.task.execute>[0]>().toEqualTypeOf<TaskParams>()
  expectTypeOf<Parameters<typeof tools.check_async_tasks.execute>[0]>().toEqualTypeOf<CheckAsyncTasksParams>()
  expectTypeOf<Parameters<typeof tools.wait_for_async_tasks.execute>[0]>().toEqualTypeOf<WaitForAsyncTasksParams>()
  void tools.task.execute({ subagent_name: 'x', goal_prompt: 'y', async: true })
  // @ts-expect-error a task has a goal
  void tools.task.execute({ subagent_name: 'x' })
  // @ts-expect-error no such action
  void tools.check_async_tasks.execute({ action: 'stop' })
  // @ts-expect-error no such parameter
  void tools.wait_for_async_tasks.execute({ seconds: 3 })
  // @ts-expect-error without a task manager there is no such tool
  expectTypeOf(tools.submit_commands)
}

export function aToolOfUnknownSchemaTakesAnything(sent: unknown): void {
  const tools: Record<string, Tool> = { ...createAgentTasks().tools }
  void tools['task']?.execute(sent)
  expectTypeOf<ToolInput<z.ZodObject>>().toBeUnknown()
  expectTypeOf<ToolInput<z.ZodObject<{ city: z.ZodString }>>>().toEqualTypeOf<{ city: string }>()
}

export function aTaskManagerAddsATool(taskManager: TaskManager): void {
  const { tools } = createAgentTasks({ taskManager })
  void tools.submit_commands.execute({ task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] })
  // @ts-expect-error commands have a tool
  void tools.submit_commands.execute({ task_name: 'Add', commands: [{ args: {} }] })
}

export function misuseDoesNotCompile(): void {
  // @ts-expect-error a tool has a description
  defineTool({ name: 'x', inputSchema: z.object({}), run: () => ({ llmContent: '', returnDisplay: '' }) })
  const run = () => ({ llmContent: '', returnDisplay: '' })
  // @ts-expect-error the input of a tool is an object
  defineTool({ name: 'x', description: '', inputSchema: z.string(), run })
  defineTool({
    name: 'x',
    description: '',
    inputSchema: z.object({}),
    // @ts-expect-error a result says something to the model and to the person
    run: () => ({ llmContent: '' }),
  })
  // @ts-expect-error a subagent has to be found
  createTaskTool({ getAsyncTaskManager })
  // @ts-expect-error the tool reads a manager
  createCheckAsyncTasksTool({})
  // @ts-expect-error an error has a type
  const result: ToolResult = { llmContent: '', returnDisplay: '', error: { message: 'no' } }
  expectTypeOf(result)
}

export function theParametersAreThoseOfTheSchemas(): void {
  expectTypeOf<TaskParams>().toExtend<{ subagent_name: string; goal_prompt: string; async?: boolean | undefined }>()
  expectTypeOf<CheckAsyncTasksParams['action']>().toEqualTypeOf<
    'list' | 'peek' | 'cancel' | 'output' | 'answer' | undefined
  >()
  expectTypeOf<WaitForAsyncTasksParams['mode']>().toEqualTypeOf<'any' | 'all' | undefined>()
  const tool = new TaskTool({ getAsyncTaskManager, resolveSubagent: () => undefined })
  expectTypeOf<(typeof tool)['kind']>().toEqualTypeOf<'execute'>()
  expectTypeOf(tool.build({ subagent_name: 'x', goal_prompt: 'y' }).getDescription()).toEqualTypeOf<string>()
  // @ts-expect-error a task has a goal
  tool.build({ subagent_name: 'x' })
  // @ts-expect-error no such parameter
  tool.build({ subagent_name: 'x', goal_prompt: 'y', background: true })
}

export function aLimitIsANumberOrAFunction(): void {
  expectTypeOf<TimeoutSettings['maxTimeoutSeconds']>().toEqualTypeOf<TimeoutSetting | undefined>()
  expectTypeOf<TimeoutSetting>().toEqualTypeOf<number | (() => number)>()
}

export function commandsAddTheToolThatRunsThem(taskManager: TaskManager): void {
  const { tools } = createAgentTasks({ commands: { allow: ['npm'], maxCommands: 2 } })
  expectTypeOf<Parameters<typeof tools.run_command.execute>[0]>().toEqualTypeOf<RunCommandParams>()
  expectTypeOf(tools.task.name).toEqualTypeOf<string>()
  void tools.run_command.execute({ command: 'npm', args: ['test'], env: { CI: '1' } })
  // @ts-expect-error a program has a name
  void tools.run_command.execute({ args: ['test'] })
  // @ts-expect-error without commands there is no such tool
  expectTypeOf(createAgentTasks().tools.run_command)
  // @ts-expect-error no such option
  createAgentTasks({ commands: { allowed: ['npm'] } })
  const withBoth = createAgentTasks({ commands: { shell: true }, taskManager })
  expectTypeOf(withBoth.tools.run_command.name).toEqualTypeOf<string>()
  expectTypeOf(withBoth.tools.submit_commands.name).toEqualTypeOf<string>()
  createRunCommandTool({ getAsyncTaskManager, commands: { allow: [] } })
}

export function outputIsFollowed(): void {
  const manager = getAsyncTaskManager()
  expectTypeOf(manager.output$('a', { cursor: 1 })).toEqualTypeOf<Observable<TaskOutputEvent>>()
  expectTypeOf<ToolContext['onUpdate']>().toEqualTypeOf<((update: OutputUpdate) => unknown) | undefined>()
  expectTypeOf<OutputUpdate>().toEqualTypeOf<{ readonly text: string; readonly cursor: number }>()
  const task = manager.getTask('a')
  expectTypeOf(task?.kind).toEqualTypeOf<'command' | undefined>()
  expectTypeOf(task?.outputTail).toEqualTypeOf<string | undefined>()
}
