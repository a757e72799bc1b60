/** Starts a program that must not outlive its host, whichever way the host ends. */
import type { RunDurability } from '../engine/runner.js'
import { GATE, spawnGated } from './gated-start.js'
import type { StartedProgram } from './supervision.js'
import { unwatchGroup, watchGroup } from './watchdog.js'

/** What to start: an absolute path and its arguments. */
export interface GuardedProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly stdin: 'ignore' | 'pipe'
  /** Where its identity is stored. */
  readonly durability: RunDurability
}

/** A program behind its gate. */
export interface GuardedStart {
  readonly child: StartedProgram
  /** Lets it run. Rejects with StoreError when its identity cannot be stored: it has not run, and ends. */
  readonly release: () => Promise<void>
}

/**
 * Starts a program behind a gate. It runs once the watchdog knows its group and its identity is stored, so it is found in every case: by
 * the watchdog when this process dies, and by the next host when the watchdog has died too.
 * @throws ProcessError; the program has not run then
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
