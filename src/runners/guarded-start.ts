/** Starts a program that must not outlive its host, however the host ends. */
import type { RunDurability } from '../engine/runner.js'
import { GATE, spawnGated } from './gated-start.js'
import type { StartedProgram } from './supervision.js'
import { unwatchGroup, watchGroup } from './watchdog.js'

/** The program to start: an absolute path and its arguments. */
export interface GuardedProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly stdin: 'ignore' | 'pipe'
  /** Where its identity is stored. */
  readonly durability: RunDurability
}

export interface GuardedStart {
  readonly child: StartedProgram
  /** Lets the program run. Rejects with StoreError if its identity cannot be stored; the program then exits without having run. */
  readonly release: () => Promise<void>
}

/**
 * Starts a program behind a gate. It runs only once the watchdog knows its group and its identity is stored. The watchdog ends it if this process
 * dies; if the watchdog has died as well, the next host does.
 * @throws ProcessError; the program did not run then
 */
export function startGuarded({ command, args, stdin, durability, ...attempt }: GuardedProgram): GuardedStart {
  const start = { command, ...attempt }
  const { child, release } = spawnGated(`${GATE}; exec "$@"`, [command, ...args], start, [stdin, 'pipe', 'pipe'])
  const { pid } = child
  if (pid !== undefined) {
    watchGroup(pid)
    child.once('close', () => unwatchGroup(pid))
  }
  return { child: child as unknown as StartedProgram, release: () => release(durability) }
}
