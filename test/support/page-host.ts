/** An agent host with the page: real tasks, which the test ends, and a real server. */
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import { createAgentTasks } from '../../src/host/agent-tasks.js'
import type { AgentTasksOptions } from '../../src/host/agent-tasks-options.js'
import type { Instance } from '../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../src/command-tasks/instances/local-instance.js'
import { createTaskPage, type TaskPageOptions } from '../../src/page/create-task-page.js'
import { instanceTool } from '../../src/protocol/instance-tools.js'
import type { RunContext, RunInput } from '../../src/engine/runner.js'
import type { SubagentRequest } from '../../src/tools/subagents.js'

/** The question of the subagent `asker`, with a field of each kind. */
const QUESTION = {
  message: 'Where shall it go?\nOne of the regions must be chosen.',
  schema: {
    type: 'object',
    properties: {
      region: {
        type: 'string',
        title: 'Region',
        oneOf: [
          { const: 'eu', title: 'Europe' },
          { const: 'us', title: 'America' },
        ],
      },
      copies: {
        type: 'integer',
        title: 'Copies',
        minimum: 1,
        maximum: 9,
        default: 2,
        description: 'How many there are.',
      },
      price: { type: 'number', title: 'Highest price' },
      note: { type: 'string', title: 'Note', maxLength: 400 },
      urgent: { type: 'boolean', title: 'Urgent' },
    },
    required: ['region', 'copies', 'urgent'],
  },
} as const

/** A picture of one red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='

const subagents = {
  /** Ends at once. Its result contains the fields of the JSON object after the colon in its goal. */
  writer: async ({ goal }: RunInput) => {
    const [, json = '{}'] = /^[^:]*: (.*)$/s.exec(goal) ?? []
    return { final_message: `Done: ${goal.slice(0, 40)}`, ...(JSON.parse(json) as object) }
  },
  clumsy: async () => {
    throw new TypeError('The tower has fallen', { cause: new Error('no cement') })
  },
  painter: async () => ({ images: [{ type: 'image', data: PNG, mimeType: 'image/png' }] }),
  asker: async (_input: RunInput, context: RunContext) => ({ answer: await context.ask(QUESTION) }),
  sleeper: async (_input: RunInput, context: RunContext) => {
    context.report({ progress: 3, total: 10, message: 'Sleeping' })
    await pause(3600_000, undefined, { signal: context.signal })
    return {}
  },
  /** Ends with the first message that it receives. */
  listener: {
    run: async (_input: RunInput, { messages }: RunContext) => {
      for await (const message of messages) return { final_message: `Heard: ${message}` }
      return {}
    },
    takesMessages: true,
  },
  /** Launches two tasks. Ends with the first message that it receives. */
  planner: {
    run: async (_input: RunInput, { messages, launch }: RunContext) => {
      launch({ subagentName: 'sleeper', goalPrompt: 'Measure the walls' })
      launch({ subagentName: 'writer', goalPrompt: 'List the paints' })
      for await (const message of messages) return { final_message: `Planned: ${message}` }
      return {}
    },
    takesMessages: true,
  },
  /** Has a schema for its input, and returns its input as its result. */
  shipper: {
    description: 'Ships what it is given.',
    contextSchema: z.object({
      region: z.enum(['eu', 'us']).describe('Where it goes.'),
      copies: z.number().int().min(1).max(9).default(2),
      label: z
        .string()
        .regex(/^[A-Z]/)
        .optional(),
    }),
    run: async ({ context = {} }: SubagentRequest) => ({ ...context }),
  },
  talker: async (_input: RunInput, context: RunContext) => {
    for (let line = 1; ; line += 1) {
      context.append(`line ${line}\n`)
      await pause(100, undefined, { signal: context.signal })
    }
  },
}

export type PageSubagent = keyof typeof subagents

export interface PageHostOptions {
  readonly agent?: AgentTasksOptions
  readonly page?: Partial<TaskPageOptions>
  /** Whether the host has instances. Default true. */
  readonly hasInstances?: boolean
}

export async function startPageHost({ agent = {}, page: pageOptions = {}, hasInstances = true }: PageHostOptions = {}) {
  const tasks = createAgentTasks({ maxAsyncTasks: -1, subagents, onError: () => undefined, ...agent })
  const instances = new InstanceManager({})
  const taskManager = new TaskManager({ instances })
  const options = { tasks, taskManager, port: 0, ...pageOptions }
  let page = await createTaskPage(options)
  if (hasInstances) instances.connect(createDesk())
  return {
    tasks,
    manager: tasks.getAsyncTaskManager(),
    taskManager,
    get url() {
      return page.url
    },
    /** Launches a task. Returns the key that the task has on the page. */
    launch: async (subagent: PageSubagent, goal: string): Promise<string> => {
      const result = await tasks.tools.task.execute({ subagent_name: subagent, goal_prompt: goal, async: true })
      if (result.error !== undefined) throw new Error(result.llmContent)
      return `async:${String(result.metadata?.['agentId'])}`
    },
    /** Submits one command. Returns the key that its task has on the page. */
    submit: (instanceId: string, tool_name: string, args: Record<string, unknown>): string => {
      const submitted = taskManager.submitTask({
        type: 'task_submit',
        task_name: tool_name,
        instanceId,
        commands: [{ tool_name, args }],
      })
      if (!('taskId' in submitted)) throw new Error(submitted.error)
      return `command:${submitted.taskId}`
    },
    connect: (instance: Instance) => instances.connect(instance),
    disconnect: (id: string) => instances.disconnect(id, 'The test disconnects it.'),
    /** Stops the server of the page. The tasks continue. */
    stopPage: () => page.close(),
    /** Starts the server of the page again, at the same address. */
    startPage: async (): Promise<void> => {
      const { port, hash } = new URL(page.url)
      page = await createTaskPage({
        ...options,
        port: Number(port),
        token: new URLSearchParams(hash.slice(1)).get('token')!,
      })
    },
    close: async (): Promise<void> => {
      await page.close()
      await tasks.dispose()
      await taskManager.dispose()
      await instances.dispose()
    },
  }
}

/** An instance whose tools have simple and nested arguments. */
export function createDesk(id = 'desk') {
  return localInstance({
    id,
    tools: [
      instanceTool({
        name: 'add',
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number().describe('The first one.'), b: z.number() }),
        execute: ({ a, b }) => ({ sum: a + b }),
      }),
      instanceTool({
        name: 'file',
        description: 'Files a letter.',
        inputSchema: z.object({
          to: z.string().regex(/@/),
          kind: z.enum(['letter', 'bill']).default('letter'),
          copies: z.number().int().optional(),
          tags: z.array(z.string()).optional(),
        }),
        execute: (letter) => letter,
      }),
      instanceTool({
        name: 'wait',
        inputSchema: z.object({ seconds: z.number() }),
        execute: async ({ seconds }, { signal }) => {
          await pause(seconds * 1000, undefined, { signal })
          return 'waited'
        },
      }),
    ],
  })
}
