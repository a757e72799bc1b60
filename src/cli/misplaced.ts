/** Finds common mistakes in a command line, such as an option without its command, and suggests the right command line. */
import { AgentTasksError } from '../errors.js'

/** Options that belong to a command. The value says whether the option takes a value. */
const COMMAND_OPTIONS: Readonly<Record<string, boolean>> = {
  '--url': true,
  '--page': true,
  '--store': true,
  '--json': false,
  '--reconnect': true,
}

/** @throws AgentTasksError that contains the right command line */
export function checkPlaces(args: readonly string[]): void {
  const [first = '', ...others] = args
  if (first === 'cancel' || first === 'watch') {
    throw misplaced(`There is no command ${first}.`, ['tasks', first, ...(others.length === 0 ? ['<id>'] : others)])
  }
  const options: string[] = []
  const rest = [...args]
  for (let [next] = rest; next !== undefined; [next] = rest) {
    const takesValue = COMMAND_OPTIONS[next.split('=', 1)[0] ?? '']
    if (takesValue === undefined) break
    options.push(...rest.splice(0, takesValue && !next.includes('=') ? 2 : 1))
  }
  const [option] = options
  if (option === undefined || rest.length === 0) return
  throw misplaced(`${option.split('=', 1)[0]} is an option of a command, and comes after it.`, [...rest, ...options])
}

const misplaced = (problem: string, words: readonly string[]): AgentTasksError =>
  new AgentTasksError('INVALID_INPUT', `${problem} Run: agent-tasks ${words.join(' ')}`)
