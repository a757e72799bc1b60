/**
 * A lock for the worktrees of a repository, for all processes of this machine. It is needed because git fails when two commands add worktrees at the
 * same time. The lock is a file in the common git directory, which names the process that holds the lock. If that process has ended, the file is
 * removed.
 */
import type { Clock } from '../../system/clock.js'
import { AgentTasksError } from '../../errors.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../system/process-identity.js'
import { readRegular } from '../../system/regular-file.js'

/** How often to try to take the lock, and for how long, in ms. */
const WAIT_MS = { step: 25, most: 300_000 } as const

/** The maximum number of bytes that are read of the lock file. */
const FILE_BYTES = 1024

interface Holder extends ProgramIdentity {
  /** A different text each time a lock is taken. */
  readonly token: string
}

/**
 * Takes the lock, makes a call, and releases the lock.
 * @throws the reason of the signal, if it aborts before the lock is taken
 * @throws AgentTasksError when another process holds the lock for five minutes
 */
export async function lockRepository<Result>(
  commonDir: string,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
  run: () => Promise<Result>,
): Promise<Result> {
  const file = `${commonDir}/agent-tasks.lock`
  for (let waited = 0; ; waited += WAIT_MS.step) {
    signal?.throwIfAborted()
    const unlock = tryLock(file)
    if (unlock !== undefined) {
      try {
        return await run()
      } finally {
        unlock()
      }
    }
    if (waited >= WAIT_MS.most) {
      const who = holderOf(file)?.pid ?? 'unknown'
      throw new AgentTasksError('WORKTREE_FAILED', `${file}: process ${who} has held this lock for five minutes.`)
    }
    await new Promise((resolve) =>
      clock.setTimeout(() => resolve(undefined), WAIT_MS.step, { name: 'lock of a repository', kind: 'poll' }),
    )
  }
}

/**
 * Tries to take the lock. The file of a process that has ended must be removed by one process only, or a second one could remove the file of the next
 * holder. So it is removed under a second lock, which the token in the file names.
 */
function tryLock(file: string): (() => void) | undefined {
  const { existsSync, linkSync, rmSync, writeFileSync } = nodeBuiltin('node:fs')
  const holder = holderOf(file)
  if (holder !== undefined) {
    const unlock = stateOf(holder) === 'alive' ? undefined : tryLock(`${file}.${holder.token}`)
    if (unlock === undefined) return undefined
    if (holderOf(file)?.token === holder.token) rmSync(file, { force: true })
    unlock()
  }
  if (existsSync(file)) return undefined
  const token = globalThis.crypto.randomUUID()
  const draft = `${file}.${token}.new`
  writeFileSync(draft, JSON.stringify({ ...identityOf(process.pid), token }), { mode: 0o600, flag: 'wx' })
  try {
    // A link appears with its whole content, and never replaces another file.
    linkSync(draft, file)
    return () => rmSync(file, { force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Reads who holds the lock; undefined if there is no lock file. A file with invalid content counts as the file of a process that has ended. */
function holderOf(file: string): Holder | undefined {
  const text = readRegular(file, FILE_BYTES)
  if (text === undefined) return undefined
  try {
    const { pid, start, boot, token } = JSON.parse(text) as Partial<Holder>
    if (
      typeof pid === 'number' &&
      typeof start === 'string' &&
      typeof boot === 'string' &&
      /^[\w-]{36}$/.test(token ?? '')
    ) {
      return { pid, start, boot, token: token ?? '' }
    }
  } catch {
    // The content is invalid, so the file has no living holder.
  }
  return { pid: 0, start: '', boot: '', token: 'malformed' }
}
