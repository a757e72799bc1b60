/** The configuration to begin with: what to write where there is none. */
import { writeFileSync } from 'node:fs'
import { ConfigFileError } from '../errors.js'
import { preview } from '../preview.js'
import type { AgentConfigInput } from '../protocol/agent-config.js'

/** One subagent that needs only Node. */
const starterConfig = {
  subagents: [
    {
      name: 'shout',
      description: 'Prints the goal in capitals.',
      command: 'node',
      args: ['-e', 'console.log(process.argv[1].toUpperCase())', '--', '{goal}'],
    },
  ],
} as const satisfies AgentConfigInput

/** What to write into a missing file, in one sentence. */
export function howToConfigure(file: string): string {
  const { args: _args, ...subagent } = starterConfig.subagents[0]
  const example = JSON.stringify({ subagents: [{ ...subagent, args: ['...', '{goal}'] }] })
  return `Write ${example} into ${preview(file)}, or let \`agent-tasks mcp --init\` write an example there.`
}

/**
 * Writes the example. A file that exists is not changed.
 * @throws ConfigFileError when it exists, or cannot be written
 */
export function writeStarterConfig(file: string): void {
  try {
    writeFileSync(file, `${JSON.stringify(starterConfig, null, 2)}\n`, { flag: 'wx' })
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    const problem = code === 'EEXIST' ? 'exists already, and was not changed.' : `cannot be written (${code}).`
    throw new ConfigFileError(file, problem, { cause })
  }
}
