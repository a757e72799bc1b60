/** The instructions of the MCP server for the model: what the server is for, and its tools in a few words. */
import { inOrder, type ToolName } from '../tools/tool-list.js'

/** The order in which the instructions name the tools. Tools that are not named here follow. */
const ORDER: readonly ToolName[] = [
  'task',
  'run_command',
  'submit_commands',
  'check_async_tasks',
  'wait_for_async_tasks',
  'read_task_output',
  'answer_async_task',
  'send_to_task',
  'cancel_async_task',
]

/** The text of the instructions. It names only tools that the client has. */
export function instructionsFor(toolNames: readonly string[]): string {
  const tools = inOrder(ORDER).filter(({ name }) => toolNames.includes(name))
  const starts = tools.flatMap(({ name, starts }) => (starts === undefined ? [] : [`${name} (${starts})`]))
  const others = tools.flatMap(({ name, brief }) => (brief === undefined ? [] : [`${name} ${brief}`]))
  return [
    `Runs work in the background. Start it with the tool ${starts.join(' or ')}, with async: true, and continue with other work.`,
    `${others.join(', ')}.`,
  ].join(' ')
}
