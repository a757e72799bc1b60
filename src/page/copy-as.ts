/** Formats a task as a shell command and as code, which create a similar task. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { escapeControls } from '../data/control-characters.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Task } from '../protocol/command-tasks.js'
import { jsonBytes } from '../data/json-size.js'
import type { CommandEntry } from './command-entry.js'
import { isLongCommand } from './command-words.js'
import type { Sources } from './sources.js'
import type { PageTaskDetail } from './wire.js'

type CopyAs = PageTaskDetail['copyAs']

/** The maximum size of the copied input, in bytes of JSON. */
const MAX_BYTES = 64 * 1024

/** Formats an async task as a call of the tool `task`, or of `run_command` if the task runs a program. */
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

/**
 * Formats a command task as a curl command and as a call of the client. Both read the token from an environment variable, because people share copied
 * texts.
 */
export function copyCommandTask(
  { restUrl, hasRestTokens }: Pick<Sources, 'restUrl' | 'hasRestTokens'>,
  entry: CommandEntry,
  task: Task | undefined,
): CopyAs {
  if (task === undefined) {
    return { typescript: `// Task ${literal(entry.id)} and its arguments are no longer kept.` }
  }
  const body = {
    task_name: task.name,
    ...(task.intention !== '' && { task_intention: task.intention }),
    instanceId: task.instanceId,
    commands: task.commands.map(({ tool_name, intention, args, timeout }) => ({
      tool_name,
      ...(intention !== '' && { intention }),
      args,
      ...omitUndefined({ timeout }),
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

// JSON may contain characters, such as U+2028, that a string of older JavaScript may not.
const literal = (value: unknown): string => escapeControls(JSON.stringify(value))

const quoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`
