/** The subagents of the demo: real programs that need only Node, npm and git. */
import { fileURLToPath } from 'node:url'
import {
  processRunner,
  type OutputObject,
  type ProcessRunnerOptions,
  type Runner,
  type TaskProgress,
} from 'agent-tasks'

/** How long a program may take to stop after SIGTERM, in ms. */
const GRACE_MS = 800

/** One of the demo's own programs. */
export const program = (name: string): string => fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url))

/** Reads `progress 3/20`. */
export function readProgress(line: string): TaskProgress | undefined {
  const match = /^progress (\d+)\/(\d+)$/.exec(line)
  return match === null ? undefined : { progress: Number(match[1]), total: Number(match[2]) }
}

/** The last line is the result; the others are progress. */
export const lastLine = (stdout: string): OutputObject => ({ final_message: stdout.trimEnd().split('\n').at(-1) ?? '' })

function node(name: string, ...args: string[]): Runner {
  const options: ProcessRunnerOptions = {
    command: process.execPath,
    args: [program(name), ...args],
    progress: readProgress,
    parse: lastLine,
    graceMs: GRACE_MS,
  }
  return processRunner(options)
}

/** The subagents by name. `{goal}` is the goal that the agent wrote. */
export const subagents: Readonly<Record<string, Runner>> = {
  historian: processRunner({
    command: 'git',
    args: ['log', '--numstat', '--format='],
    parse: (stdout) => {
      const added = stdout.split('\n').reduce((sum, line) => sum + (Number.parseInt(line, 10) || 0), 0)
      return { final_message: `${added} lines were added in this history`, emitted_vars: { added: String(added) } }
    },
  }),
  hasher: node('hash-files'),
  mathematician: node('count-primes', '{goal}'),
  clumsy: node('fail'),
  sleeper: node('hang'),
  stubborn: node('ignore-sigterm'),
  twin: node('until', '{goal}'),
  npm: processRunner({ command: 'npm', args: ['--version'] }),
  git: processRunner({ command: 'git', args: ['--version'] }),
}
