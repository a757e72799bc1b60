/** Starts a program that must not outlive its host, even if the host is killed. */
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
  /** Stores the identity of the program. */
  readonly durability: RunDurability
}

export interface GuardedStart {
  readonly child: StartedProgram
  /** Lets the program run. If its identity cannot be stored, this rejects with StoreError, and the program exits without having run. */
  readonly release: () => Promise<void>
}

/**
 * Starts a program behind a gate. The program runs only when the watchdog knows its process group, and its identity is stored. If this process dies, the
 * watchdog kills the group. If the watchdog has died as well, the next host kills it.
 * @throws ProcessError when the program did not start
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
