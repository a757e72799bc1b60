/** Runs command lines in this process, with a real server on a free port, and returns their output. */
import { expect, onTestFinished } from 'vitest'
import { createDemoInstance } from '../../../src/cli/demo-instance.js'
import { runProgram } from '../../../src/cli/program.js'
import type { Output } from '../../../src/cli/terminal.js'
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../../../src/server/start-task-server.js'

export interface Ran {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether the streams are a terminal. */
  readonly isTTY?: boolean
}

/** Runs one command line to its end. */
export const run = (args: readonly string[], options: RunOptions = {}): Promise<Ran> => begin(args, options).ended

/** Starts one command line; returns its output so far and its end. */
export function begin(
  args: readonly string[],
  { stdin = '', env = {}, isTTY = false }: RunOptions = {},
): { readonly written: { readonly stdout: string; readonly stderr: string }; readonly ended: Promise<Ran> } {
  const written = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof written): Output => ({
    isTTY,
    columns: 100,
    write: (text) => {
      written[name] += text
      return true
    },
  })
  const io = {
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    env,
    readStdin: () => Promise.resolve(stdin),
  }
  const ended = runProgram(args, io, '1.2.3').then((exitCode) => ({ exitCode, ...written }))
  return { written, ended }
}

/** Calls the last listener of a signal, which is the command line's. */
export function signal(name: 'SIGINT' | 'SIGTERM'): void {
  const hear = process.listeners(name).at(-1)
  if (hear === undefined) throw new Error(`no listener for ${name}`)
  hear(name)
}

/** A server with the demo instance, and command lines that connect to it. */
export async function startCommandLine(options: TaskServerOptions = {}) {
  const server: TaskServer = await startTaskServer({
    port: 0,
    env: {},
    logLevel: 'silent',
    instances: [createDemoInstance()],
    ...options,
    tasks: { wsPort: 0, ...options.tasks },
  })
  onTestFinished(() => server.close({ drainMs: 0 }))
  return {
    server,
    run: (args: readonly string[], { env, ...more }: RunOptions = {}) =>
      run(args, { ...more, env: { AGENT_TASKS_URL: server.httpUrl, ...env } }),
    submit: (task: object, args: readonly string[] = [], more: RunOptions = {}) =>
      run(['submit', '-', ...args], {
        ...more,
        stdin: JSON.stringify(task),
        env: { AGENT_TASKS_URL: server.httpUrl, ...more.env },
      }),
  }
}

/** The values of JSON lines. */
export const jsonLines = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)

// vitest types its matchers as any.
export const containing = (part: string): string => expect.stringContaining(part) as string
export const matching = (pattern: RegExp): string => expect.stringMatching(pattern) as string
