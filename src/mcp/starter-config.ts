/** The example configuration, which `agent-tasks mcp --init` writes. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigFileError } from '../errors.js'
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

export function howToConfigure(file: string): string {
  const { name, description } = starterConfig.subagents[0]
  const example = JSON.stringify({ subagents: [{ name, description, command: 'YOUR-PROGRAM', args: ['{goal}'] }] })
  return `To write a working example, run \`npx --no-install agent-tasks mcp --init --config ${JSON.stringify(file)}\`. To write your own, begin with ${example}.`
}

/** Everyone can read the file, and only its owner can write it. The mode is set by `chmod`, because the umask may restrict the mode of a new file. */
const MODE = 0o644

/**
 * Writes the example configuration. Never overwrites a file.
 * @returns the content and the mode of the file
 * @throws INVALID_CONFIG when the file exists or cannot be written
 */
export function writeStarterConfig(file: string): { readonly bytes: Buffer; readonly mode: number } {
  const bytes = Buffer.from(`${JSON.stringify({ $schema: schemaFor(file), ...starterConfig }, null, 2)}\n`)
  try {
    writeFileSync(file, bytes, { flag: 'wx', mode: MODE })
    chmodSync(file, MODE)
    return { bytes, mode: MODE }
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    const problem = code === 'EEXIST' ? 'exists already, and was not changed.' : `cannot be written (${code}).`
    throw new ConfigFileError(file, problem, { cause })
  }
}

const SCHEMA = 'agent-tasks.config.schema.json'

/**
 * The path of the JSON Schema for editors. The copy in the project is preferred, because everyone who works on the project has it. Otherwise the schema
 * of this installation is used.
 */
function schemaFor(file: string): string {
  const local = `./node_modules/agent-tasks/${SCHEMA}`
  if (existsSync(join(dirname(file), local))) return local
  const manifest = createRequire(import.meta.url).resolve('agent-tasks/package.json')
  return pathToFileURL(join(dirname(manifest), SCHEMA)).href
}
