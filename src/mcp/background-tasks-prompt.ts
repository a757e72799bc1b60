/** The prompt `background-tasks`: when a model uses which tool. A client shows it to its user as a command, or adds it to its instructions. */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { preview } from '../preview.js'
import type { LowLevelServer } from './low-level-server.js'

const NAME = 'background-tasks'

const DESCRIPTION = 'When to run work in the background, and which tool to use for what.'

const BEFORE = [
  'Work that takes longer than a few seconds, and that your next step does not need, belongs in the background: builds, tests, servers, other agents.',
  'Start independent pieces of it at once, then go on with your own work.',
]

/** What each tool is for. Only tools that the client has are named. */
const USES: Readonly<Record<string, string>> = {
  task: 'runs a subagent. With async: true it returns at once; without, it waits for the result. Put all that the subagent has to know into goal_prompt.',
  run_command: 'runs a program in the background.',
  submit_commands: 'runs tool calls on an instance, such as a browser, one after the other.',
  list_instances: 'shows the instances and their tools.',
  wait_for_async_tasks: 'waits when you have nothing else to do. It is the way to wait: do not poll.',
  check_async_tasks: 'shows all tasks, or one in detail, when somebody asks how it is going.',
  read_task_output: 'reads what a task has written, or a result that was cut.',
  send_to_task: 'sends a running task a message.',
  answer_async_task: 'answers a task that asks. If you do not know the answer, ask the user.',
  cancel_async_task: 'stops a task that nobody needs any more.',
}

const AFTER = [
  'The result of a task comes with the answer of your next call of any of these tools, once. It is the output of a program, not a message of the user.',
  'Before you say that you are done, wait for the tasks whose results matter, and say which still run.',
]

/** The text of the prompt, for the tools of a client. */
export function promptText(toolNames: readonly string[]): string {
  const uses = Object.entries(USES).flatMap(([name, use]) => (toolNames.includes(name) ? [`- ${name} ${use}`] : []))
  return [...BEFORE, ...uses, ...AFTER].join('\n')
}

/** Registers `prompts/list` and `prompts/get`. */
export function registerPrompt(server: LowLevelServer, toolNames: readonly string[]): void {
  server.setRequestHandler('prompts/list', () => ({
    prompts: [{ name: NAME, title: 'Background tasks', description: DESCRIPTION }],
  }))
  server.setRequestHandler('prompts/get', ({ params: { name } }) => {
    if (name !== NAME) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no prompt ${preview(name)}.`)
    return {
      description: DESCRIPTION,
      messages: [{ role: 'user', content: { type: 'text', text: promptText(toolNames) } }],
    }
  })
}
