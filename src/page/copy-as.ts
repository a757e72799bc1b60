/** A task as a command line, and as code, that makes another one. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { Task } from '../protocol/command-tasks.js'
import { jsonBytes } from '../protocol/json-size.js'
import type { CommandEntry } from './command-entry.js'
import { beginningOf } from './texts.js'
import type { PageTaskDetail } from './wire.js'

type CopyAs = PageTaskDetail['copyAs']

/** A larger task is not written out, in bytes of JSON. */
const MAX_BYTES = 64 * 1024

/** A subagent's task, as a call of the tool `task`, or of `run_command`. */
export function copySubagent({ kind, command = [], subagentName, goalPrompt, timeoutMs }: AsyncTaskInfo): CopyAs {
  const [program = '', ...args] = command
  const input = {
    ...(kind === 'command'
      ? { command: program, args }
      : { subagent_name: subagentName, goal_prompt: beginningOf(goalPrompt, MAX_BYTES) }),
    async: true,
    ...(timeoutMs !== undefined && { timeout_seconds: Math.ceil(timeoutMs / 1000) }),
  }
  const tool = kind === 'command' ? 'run_command' : 'task'
  return { typescript: `await tasks.tools.${tool}.execute(${literal(input)})` }
}

/** A command task, as a request and as a call of the client. */
export function copyCommandTask(restUrl: string | undefined, entry: CommandEntry, task: Task | undefined): CopyAs {
  if (task === undefined) {
    return { typescript: `// Task ${literal(entry.id)} is no longer kept, and so are its arguments.` }
  }
  if (jsonBytes(task.commands, MAX_BYTES) > MAX_BYTES) {
    return { typescript: '// The commands are too large to be copied.' }
  }
  const body = {
    task_name: task.name,
    ...(task.intention !== '' && { task_intention: task.intention }),
    instanceId: task.instanceId,
    commands: task.commands.map(({ tool_name, intention, args, timeout }) => ({
      tool_name,
      ...(intention !== '' && { intention }),
      args,
      ...(timeout !== undefined && { timeout }),
    })),
  }
  const call = `submit(${literal(body)})`
  if (restUrl === undefined) {
    return { typescript: `taskManager.submitTask({ type: 'task_submit', ...${literal(body)} })` }
  }
  return {
    curl: `curl -s ${quoted(`${restUrl}/tasks`)} -H 'content-type: application/json' -d ${quoted(literal(body))}`,
    typescript: [
      `import { createTaskClient } from 'agent-tasks/client'`,
      `const client = createTaskClient({ url: ${literal(restUrl)} })`,
      `const { taskId } = await client.${call}`,
    ].join('\n'),
  }
}

// Line separators are allowed in JSON, and were not always in JavaScript.
const literal = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** One word of a shell, whatever is in it. */
const quoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`
