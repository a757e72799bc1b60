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

/**
 * Starts a program behind a gate. It runs once the watchdog knows its group and its identity is stored, so it is found in every case: by
 * the watchdog when this process dies, and by the next host when the watchdog has died too.
 * @throws StoreError when its identity cannot be stored, ProcessError; the program has not run then
 */
export function startGuarded({ command, args, stdin, durability, ...attempt }: GuardedProgram): StartedProgram {
  const start = { command, ...attempt }
  const { child, release } = spawnGated(`${GATE}; exec "$@"`, [command, ...args], start, [stdin, 'pipe', 'pipe'])
  const { pid } = child
  if (pid === undefined) return child as unknown as StartedProgram
  watchGroup(pid)
  child.once('close', () => unwatchGroup(pid))
  release(durability)
  return child as unknown as StartedProgram
}
