/** The tools that MCP's conformance suite calls, on the registry and the Tasks extension of this package. */
import {
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type InputRequiredResult,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { RunContext, Runner } from '../../src/engine/runner.js'
import type { Backend } from '../../src/mcp/backend.js'
import type { McpResult, McpTool, StartedTask } from '../../src/mcp/mcp-tool.js'

const text = (words: string): CallToolResult => ({ content: [{ type: 'text', text: words }] })

const toResult = (task: SettledTaskInfo): CallToolResult =>
  task.status === 'completed'
    ? text(task.output.final_message ?? '')
    : { ...text(task.error ?? task.status), isError: true }

const confirmation = {
  type: 'object',
  properties: { confirm: { type: 'boolean', title: 'Confirm' } },
  required: ['confirm'],
}

/** The tools of one owner. */
export function createFixtureTools({ manager, clock }: Backend, owner: string): McpTool[] {
  const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = clock.setTimeout(resolve, ms)
      signal.addEventListener('abort', () => {
        clock.clearTimeout(timer)
        reject(new DOMException('It was aborted.', 'AbortError'))
      })
    })
  const ask = async (context: RunContext, message: string): Promise<string> => {
    const { action, content } = await context.ask({ message, schema: confirmation })
    return action === 'accept' ? JSON.stringify(content) : action
  }
  const launch = (name: string, runner: Runner, more: Partial<StartedTask> = {}): StartedTask => ({
    taskId: manager.launch({ subagentName: name, goalPrompt: name, owner }, runner).id,
    toResult,
    ...more,
  })
  /** A tool whose calls become tasks, or wait for the result without the extension. */
  const work = (
    name: string,
    inputSchema: z.ZodType,
    run: (args: never, context: RunContext) => Promise<string>,
  ): McpTool => {
    const runner =
      (args: unknown): Runner =>
      async (_input, context) => ({ final_message: await run(args as never, context) })
    return {
      name,
      description: `The fixture ${name}`,
      inputSchema,
      start: (args) => Promise.resolve(launch(name, runner(args))),
      call: async (args) => {
        const { taskId } = launch(name, runner(args))
        const { settled } = await manager.waitFor([taskId])
        return toResult(settled[0]!)
      },
    }
  }
  const nothing = z.object({})

  return [
    {
      name: 'greet',
      description: 'Says hello',
      inputSchema: z.object({ name: z.string() }),
      call: ({ name }) => Promise.resolve(text(`Hello, ${String(name)}!`)),
    },
    work(
      'slow_compute',
      z.object({ seconds: z.number(), label: z.string().optional() }),
      async ({ seconds }: { seconds: number }, { signal }) => {
        await sleep(seconds * 1000, signal)
        return `Computed for ${seconds} s`
      },
    ),
    {
      ...work('failing_job', nothing, async (_args, { signal }) => {
        await sleep(1000, signal)
        throw new Error('The job failed.')
      }),
      requiresTask: true,
    },
    {
      name: 'protocol_error_job',
      description: 'Ends in an error of the protocol',
      inputSchema: nothing,
      call: () => Promise.reject(new ProtocolError(ProtocolErrorCode.InternalError, 'The server broke.')),
      start: () => {
        const broken = (): never => {
          throw new ProtocolError(ProtocolErrorCode.InternalError, 'The server broke.')
        }
        return Promise.resolve(launch('protocol_error_job', broken, { toResult: broken }))
      },
    },
    work('confirm_delete', z.object({ filename: z.string() }), async ({ filename }: { filename: string }, context) => {
      return `${filename}: ${await ask(context, `Delete ${filename}?`)}`
    }),
    work('multi_input', nothing, async (_args, context) => {
      const answers = await Promise.all([ask(context, 'The first?'), ask(context, 'The second?')])
      return answers.join(' ')
    }),
    {
      name: 'test_tool_with_task',
      description: 'Asks for a name first, and then becomes a task',
      inputSchema: nothing,
      requiresTask: true,
      call: () => Promise.reject(new ProtocolError(ProtocolErrorCode.InternalError, 'It is always a task.')),
      start: (_args, { inputResponses }) => {
        const answer = inputResponses?.['user_name'] as { content?: { name?: string } } | undefined
        if (answer === undefined) return Promise.resolve<McpResult>(ASK_FOR_NAME)
        const name = answer.content?.name ?? 'nobody'
        return Promise.resolve(launch('test_tool_with_task', () => ({ final_message: `Hello, ${name}!` })))
      },
    },
  ]
}

const ASK_FOR_NAME: InputRequiredResult = {
  resultType: 'input_required',
  inputRequests: {
    user_name: {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: 'What is your name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
    },
  },
}
