/** Starts a program that must not outlive its host, whichever way the host ends. */
import { RUN_TOKEN } from '../engine/reap.js'
import { identityOf } from '../process-identity.js'
import type { RunDurability } from '../engine/runner.js'
import { SHELL_NAME, spawnShell } from './start-error.js'
import type { StartedProgram } from './supervision.js'
import { GATE_SCRIPT, unwatchGroup, watchGroup } from './watchdog.js'

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
export function startGuarded({ command, args, cwd, env, stdin, durability }: GuardedProgram): StartedProgram {
  const token = globalThis.crypto.randomUUID()
  const child = spawnShell(
    ['-c', GATE_SCRIPT, SHELL_NAME, command, ...args],
    { command, cwd, env },
    {
      cwd,
      env: { ...env, [RUN_TOKEN]: token },
      stdio: [stdin, 'pipe', 'pipe', 'pipe'],
      detached: true,
    },
  )
  const { pid } = child
  const gate = child.stdio[3] as NodeJS.WritableStream & { destroy(): void }
  // The program may end before it has read its gate.
  gate.on('error', () => undefined)
  if (pid === undefined) return child as unknown as StartedProgram
  watchGroup(pid)
  child.once('close', () => unwatchGroup(pid))
  const identity = identityOf(pid)
  try {
    if (identity !== undefined) durability.saveProgram({ identity, token })
  } catch (error) {
    gate.destroy()
    throw error
  }
  gate.end('go\n')
  return child as unknown as StartedProgram
}
