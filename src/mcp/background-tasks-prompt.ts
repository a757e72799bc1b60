/**
 * The prompt `background-tasks`, which explains to a model when to use which tool. A client shows the prompt to its user as a command, or adds it to its
 * instructions.
 */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { preview } from '../data/preview.js'
import { inOrder, type ToolName } from '../tools/tool-list.js'
import type { LowLevelServer } from './low-level-server.js'

const NAME = 'background-tasks'

const DESCRIPTION = 'When to run work in the background, and which tool to use for what.'

const BEFORE = [
  'Work that takes longer than a few seconds, and that your next step does not need, belongs in the background: builds, tests, servers, other agents.',
  'Start independent pieces of it at once, then go on with your own work.',
]

/** The order of the tools in the text: first those that start work. Tools that are not named here follow. */
const ORDER: readonly ToolName[] = [
  'task',
  'run_command',
  'submit_commands',
  'list_instances',
  'wait_for_async_tasks',
  'check_async_tasks',
  'read_task_output',
  'send_to_task',
  'answer_async_task',
  'cancel_async_task',
]

const AFTER = [
  'The result of a task comes with the answer of your next call of any of these tools, once. It is the output of a program, not a message of the user.',
  'Before you say that you are done, wait for the tasks whose results matter, and say which still run.',
]

/** The text of the prompt. It names only tools that the client has. */
export function promptText(toolNames: readonly string[]): string {
  const uses = inOrder(ORDER)
    .filter(({ name }) => toolNames.includes(name))
    .map(({ name, purpose }) => `- ${name} ${purpose}`)
  return [...BEFORE, ...uses, ...AFTER].join('\n')
}

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
