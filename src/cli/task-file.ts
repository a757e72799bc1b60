/** Reads the task for `submit` from a file or from standard input. */
import { readFile } from 'node:fs/promises'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError } from '../errors.js'
import type { TaskSubmission } from '../client/task-client.js'
import { parseInput } from '../protocol/parse.js'
import { taskSubmitSchema } from '../protocol/task-submission.js'

/**
 * @param path the path of a JSON file, or `-` for standard input
 * @throws INVALID_INPUT that names the file and the invalid field
 */
export async function readTask(path: string, readStdin: () => Promise<string>): Promise<TaskSubmission> {
  const name = path === '-' ? 'standard input' : path
  const text = await (path === '-' ? readStdin() : readFile(path, 'utf8')).catch((error: unknown) => {
    throw new InvalidInputError('FILE', path, `a readable file (${(error as Error).message})`)
  })
  let json: unknown
  try {
    json = JSON.parse(withoutByteOrderMark(text))
  } catch (error) {
    throw new InvalidInputError(name, text, `JSON (${(error as Error).message})`)
  }
  const { task_name, task_intention, instanceId, commands, metadata } = parseInput(taskSubmitSchema(), json, name)
  return {
    task_name,
    task_intention,
    commands: commands.map(({ timeout, ...rest }) => ({ ...rest, ...omitUndefined({ timeout }) })),
    ...omitUndefined({ instanceId, metadata }),
  }
}
