/**
 * Starts a shell that waits until the store knows it, and then becomes a program. So every program that runs is in the store: the next host
 * finds it there, and not in files that a program can write to.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { RUN_TOKEN, type StartedProgram } from '../engine/reap.js'
import type { RunDurability } from '../engine/runner.js'
import { identityOf } from '../process-identity.js'
import { SHELL_NAME, spawnShell, type StartAttempt } from './start-error.js'

/** The first command of such a shell: it ends when descriptor 3 is closed before a line has come, as when its host dies. */
export const GATE = 'read -r go <&3 || exit 126; exec 3<&-'

/** A shell that waits at its gate. */
export interface GatedShell {
  /** Without a pid, it could not be started, and emits `error`. */
  readonly child: ChildProcess
  /** Undefined for one that has ended by now. */
  readonly program: StartedProgram | undefined
  /** Stores who it is, and lets it go on. Rejects with StoreError: it ends, and no program has run. */
  readonly release: (durability: RunDurability) => Promise<void>
}

/**
 * Starts a shell with a script that begins with `GATE`.
 * @throws ProcessError for what the system refuses at once
 */
export function spawnGated(
  script: string,
  args: readonly string[],
  attempt: StartAttempt,
  [stdin, stdout, stderr]: readonly ('ignore' | 'pipe')[],
): GatedShell {
  const token = globalThis.crypto.randomUUID()
  const { cwd, env } = attempt
  const options: SpawnOptions = {
    cwd,
    env: { ...env, [RUN_TOKEN]: token },
    stdio: [stdin, stdout, stderr, 'pipe'],
    detached: true,
  }
  const child = spawnShell(['-c', script, SHELL_NAME, ...args], attempt, options)
  const gate = child.stdio[3] as NodeJS.WritableStream & { destroy(): void }
  // The shell may end before it has read its gate.
  gate.on('error', () => undefined)
  const identity = child.pid === undefined ? undefined : identityOf(child.pid)
  const program = identity && { identity, token }
  return {
    child,
    program,
    release: async (durability) => {
      try {
        if (program !== undefined) await durability.saveProgram(program)
      } catch (error) {
        gate.destroy()
        throw error
      }
      gate.end('go\n')
    },
  }
}
