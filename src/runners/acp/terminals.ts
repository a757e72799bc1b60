/** The terminals of one run: programs that this process starts for the agent. The option `commands` says which programs are allowed. */
import { RequestError } from '@agentclientprotocol/sdk'
import type { CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse } from '@agentclientprotocol/sdk'
import { ByteTail } from '../../engine/byte-tail.js'
import type { RunContext, RunInput } from '../../engine/runner.js'
import { runAttached } from '../attached-program.js'
import { keptText } from '../captured-output.js'
import { preview } from '../../data/preview.js'
import { allowedCommand, programPath, type CommandPolicy } from '../../tools/command-policy.js'
import type { AcpSettings } from './acp-options.js'

/** The maximum number of terminals that a run may have at the same time. */
const MAX_TERMINALS = 16

/** The maximum size of a terminal's output that is kept, in bytes (1 MiB). */
const MAX_OUTPUT_BYTES = 1024 * 1024

interface Terminal {
  readonly output: ByteTail
  readonly stop: AbortController
  /** How the program ended. Undefined while it runs. */
  exit?: TerminalExitStatus
  readonly ended: Promise<TerminalExitStatus>
}

/** The terminals, by their ids. Methods throw a RequestError for an unknown id. */
export interface Terminals {
  create(request: CreateTerminalRequest): string
  output(id: string): TerminalOutputResponse
  waitForExit(id: string): Promise<TerminalExitStatus>
  kill(id: string): void
  release(id: string): void
  /** Ends all terminals. Resolves when all their programs have ended. */
  close(): Promise<void>
}

/** @param policy the programs that the agent may start */
export function openTerminals(
  { graceMs, killSignal, clock }: AcpSettings['program'],
  policy: CommandPolicy,
  input: RunInput,
  { durability, trace }: RunContext,
): Terminals {
  const terminals = new Map<string, Terminal>()
  const running = new Set<Promise<unknown>>()
  // A store records one program for each run, which is the agent. So the programs of terminals are not recorded; the watchdog process ends them.
  const context = {
    trace,
    ...(durability !== undefined && { durability: { ...durability, saveProgram: () => Promise.resolve() } }),
  }
  let count = 0
  const find = (id: string): Terminal => {
    const terminal = terminals.get(id)
    if (terminal === undefined) throw RequestError.resourceNotFound(id.slice(0, 100))
    return terminal
  }
  const start = (request: CreateTerminalRequest): Terminal => {
    const { command, args = [], env = [], cwd, outputByteLimit } = request
    // With `shell`, a command without arguments is a command line for the shell. A program with arguments runs without a shell.
    const isProgram = policy.shell === true && args.length > 0
    const allowed = allowedCommand(isProgram ? { ...policy, shell: false, allow: [command] } : policy, {
      command,
      args,
      cwd: cwd ?? undefined,
      env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
    })
    if ('expected' in allowed) {
      const { field, received, expected } = allowed
      throw RequestError.invalidParams(undefined, `${field}: ${preview(received)}, expected ${expected}`)
    }
    const [file, ...rest] = allowed.argv
    const output = new ByteTail(Math.max(1, Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)))
    const onOutput = (chunk: Uint8Array): void => output.append(chunk)
    const text = () => keptText(output)
    const stop = new AbortController()
    const run = runAttached(
      {
        command: programPath(file),
        args: rest,
        cwd: allowed.cwd,
        env: allowed.env,
        graceMs,
        killSignal,
        endDetached: true,
        clock,
        stdin: 'ignore',
        signal: stop.signal,
        output: { onStdout: onOutput, onStderr: onOutput, stdout: text, stderr: text },
      },
      input,
      context,
    )
    const ended = run.then(
      ({ end }): TerminalExitStatus => ({ exitCode: end.exitCode, signal: end.signal }),
      (error: unknown): TerminalExitStatus => {
        onOutput(new TextEncoder().encode((error as Error).message))
        return { exitCode: 127, signal: null }
      },
    )
    const terminal: Terminal = { output, stop, ended }
    const all = ended.then((exit) => {
      terminal.exit = exit
      running.delete(all)
    })
    running.add(all)
    return terminal
  }
  return {
    create: (request) => {
      if (running.size >= MAX_TERMINALS || terminals.size >= MAX_TERMINALS) {
        throw RequestError.invalidRequest(undefined, `a run has at most ${MAX_TERMINALS} terminals: release one first`)
      }
      count += 1
      const id = `terminal-${count}`
      terminals.set(id, start(request))
      return id
    },
    output: (id) => {
      const { output, exit } = find(id)
      const { text, droppedBytes } = keptText(output)
      return { output: text, truncated: droppedBytes > 0, ...(exit !== undefined && { exitStatus: exit }) }
    },
    waitForExit: (id) => find(id).ended,
    kill: (id) => find(id).stop.abort(),
    release: (id) => {
      find(id).stop.abort()
      terminals.delete(id)
    },
    close: async () => {
      for (const { stop } of terminals.values()) stop.abort()
      await Promise.all(running)
    },
  }
}
