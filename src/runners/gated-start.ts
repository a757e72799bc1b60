/**
 * Starts a shell that waits until its identity is stored, and only then executes a program. So every running program is in the store, where the next
 * host finds it. The shell waits for a line in a pipe. A file as a signal would be unsafe, because programs can write to files.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import type { StartedProgram } from '../engine/reap.js'
import type { RunProcesses, StopSettings } from '../engine/run-processes.js'
import type { RunDurability } from '../engine/runner.js'
import { watchdogIdentity } from '../engine/watchdog.js'
import { identityOf } from '../system/process-identity.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { SHELL_NAME, spawnShell, type StartAttempt } from './start-error.js'

/**
 * The first command of such a shell, unless it also notes what happened (`surviving-script.ts`): it waits for a line on descriptor 3. If the descriptor is closed before a line came, for example because the host
 * has died, the shell exits.
 */
export const GATE = 'read -r go <&3 || exit 126; exec 3<&-'

export interface GatedShell {
  /** The process of the shell. If the shell could not be started, it has no pid and emits `error`. */
  readonly child: ChildProcess
  /** The identity of the shell, and later of its program. Undefined if the shell has already ended. */
  readonly program: StartedProgram | undefined
  /** Stores the identity of the shell and lets the shell continue. If this rejects with StoreError, the shell exits without running the program. */
  readonly release: (durability: RunDurability) => Promise<void>
}

/**
 * Starts a shell with a script that begins with `GATE`, or with commands like it.
 * @throws ProcessError when the start fails immediately
 */
export function spawnGated(
  script: string,
  args: readonly string[],
  attempt: StartAttempt,
  run: RunProcesses,
  { killSignal, graceMs }: StopSettings,
  [stdin, stdout, stderr]: readonly ('ignore' | 'pipe')[],
): GatedShell {
  const { cwd, env } = attempt
  const options: SpawnOptions = {
    cwd,
    env: run.environment(env),
    stdio: [stdin, stdout, stderr, 'pipe'],
    detached: true,
  }
  const child = spawnShell(['-c', script, SHELL_NAME, ...args], attempt, options)
  const gate = child.stdio[3] as NodeJS.WritableStream & { destroy(): void }
  // The shell may end before it reads from its gate. Writing to the gate then emits an error.
  gate.on('error', () => undefined)
  const identity = child.pid === undefined ? undefined : identityOf(child.pid)
  run.lead(child)
  const program = identity && {
    identity,
    token: run.token,
    killSignal,
    graceMs,
    ...omitUndefined({ forks: run.forks, watchdog: run.isWatched ? watchdogIdentity() : undefined }),
  }
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
