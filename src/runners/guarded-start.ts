/** Starts a program that must not outlive its host, even if the host is killed. */
import type { RunProcesses, StopSettings } from '../engine/run-processes.js'
import type { RunDurability } from '../engine/runner.js'
import { GATE, spawnGated } from './gated-start.js'
import type { StartedProgram } from './supervision.js'

/** The program to start: an absolute path and its arguments. */
export interface GuardedProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly stdin: 'ignore' | 'pipe'
  readonly run: RunProcesses
  readonly stop: StopSettings
  /** Stores the identity of the program. */
  readonly durability: RunDurability
}

export interface GuardedStart {
  readonly child: StartedProgram
  /** Lets the program run. If its identity cannot be stored, this rejects with StoreError, and the program exits without having run. */
  readonly release: () => Promise<void>
}

/**
 * Starts a program behind a gate. The program runs only when its identity is stored. If this process dies, the watchdog ends the run. If the watchdog has
 * died as well, the next host ends it.
 * @throws ProcessError when the program did not start
 */
export function startGuarded({
  command,
  args,
  stdin,
  durability,
  run,
  stop,
  ...attempt
}: GuardedProgram): GuardedStart {
  const start = { command, ...attempt }
  const stdio = [stdin, 'pipe', 'pipe'] as const
  const { child, release } = spawnGated(`${GATE}; exec "$@"`, [command, ...args], start, run, stop, stdio)
  return { child: child as unknown as StartedProgram, release: () => release(durability) }
}
