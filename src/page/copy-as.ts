/** Formats a task as a command line and as code that create a similar task. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { escapeControls } from '../text/control-characters.js'
import { defined } from '../defined.js'
import type { Task } from '../protocol/command-tasks.js'
import { jsonBytes } from '../json/json-size.js'
import type { CommandEntry } from './command-entry.js'
import { isLongCommand } from './command-words.js'
import type { Sources } from './sources.js'
import type { PageTaskDetail } from './wire.js'

type CopyAs = PageTaskDetail['copyAs']

/** The maximum of input to include, in bytes of JSON. */
const MAX_BYTES = 64 * 1024

/** Formats a subagent's task as a call of the tool `task` or `run_command`. */
export function copySubagent(record: AsyncTaskInfo, isGoalCut = false): CopyAs {
  const { kind, command = [], subagentName, goalPrompt, timeoutMs } = record
  const isCommand = kind === 'command'
  if (isCommand && isLongCommand(command)) return tooLong('command')
  if (!isCommand && (isGoalCut || isTooLong(goalPrompt))) return tooLong('goal')
  const [program = '', ...args] = command
  const input = {
    ...(isCommand ? { command: program, args } : { subagent_name: subagentName, goal_prompt: goalPrompt }),
    async: true,
    ...(timeoutMs !== undefined && { timeout_seconds: Math.ceil(timeoutMs / 1000) }),
  }
  const tool = isCommand ? 'run_command' : 'task'
  return { typescript: `await tasks.tools.${tool}.execute(${literal(input)})` }
}

/** Formats a command task as a request and as a call of the client. Both read the token from the environment, because copied texts are shared. */
export function copyCommandTask(
  { restUrl, hasRestTokens }: Pick<Sources, 'restUrl' | 'hasRestTokens'>,
  entry: CommandEntry,
  task: Task | undefined,
): CopyAs {
  if (task === undefined) {
    return { typescript: `// Task ${literal(entry.id)} is no longer kept, and so are its arguments.` }
  }
  const body = {
    task_name: task.name,
    ...(task.intention !== '' && { task_intention: task.intention }),
    instanceId: task.instanceId,
    commands: task.commands.map(({ tool_name, intention, args, timeout }) => ({
      tool_name,
      ...(intention !== '' && { intention }),
      args,
      ...defined({ timeout }),
    })),
  }
  if (isTooLong(body)) return tooLong('list of commands')
  const call = `submit(${literal(body)})`
  if (restUrl === undefined) {
    return { typescript: `taskManager.submitTask({ type: 'task_submit', ...${literal(body)} })` }
  }
  const [authorization, token] = hasRestTokens
    ? [`-H "authorization: Bearer $AGENT_TASKS_TOKEN" `, `, token: process.env['AGENT_TASKS_TOKEN']`]
    : ['', '']
  return {
    curl: `curl -s ${quoted(`${restUrl}/tasks`)} ${authorization}-H 'content-type: application/json' -d ${quoted(literal(body))}`,
    typescript: [
      `import { createTaskClient } from 'agent-tasks/client'`,
      `const client = createTaskClient({ url: ${literal(restUrl)}${token} })`,
      `const { taskId } = await client.${call}`,
    ].join('\n'),
  }
}

const isTooLong = (input: unknown): boolean => jsonBytes(input, MAX_BYTES) > MAX_BYTES

const tooLong = (what: string): CopyAs => ({
  typescript: `// The ${what} is too long to copy.`,
})

// Older JavaScript does not allow some characters that JSON allows, such as line separators.
const literal = (value: unknown): string => escapeControls(JSON.stringify(value))

/** Quotes a word for a shell. */
const quoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`
