/**
 * Starts a shell that waits until it is stored, and then executes a program. Thus every running program is in the store, where the next host finds
 * it. Files would be unsafe, because a program can write to them.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { RUN_TOKEN, type StartedProgram } from '../engine/reap.js'
import type { RunDurability } from '../engine/runner.js'
import { identityOf } from '../process-identity.js'
import { SHELL_NAME, spawnShell, type StartAttempt } from './start-error.js'

/**
 * The first command of such a shell. The shell exits if descriptor 3 is closed before it has received a line, for example because its host has died.
 */
export const GATE = 'read -r go <&3 || exit 126; exec 3<&-'

export interface GatedShell {
  /** If it could not be started, it has no pid and emits `error`. */
  readonly child: ChildProcess
  /** Undefined if the shell has already ended. */
  readonly program: StartedProgram | undefined
  /** Stores the identity of the shell and lets it continue. Rejects with StoreError; the shell then exits without running a program. */
  readonly release: (durability: RunDurability) => Promise<void>
}

/**
 * Starts a shell with a script that begins with `GATE`.
 * @throws ProcessError if the system refuses at once
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
