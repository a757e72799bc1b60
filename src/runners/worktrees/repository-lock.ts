/**
 * A lock for the worktrees of a repository, shared by all processes of this machine. It is needed because git fails when two commands add worktrees
 * at the same time. The lock is a file in the common git directory that names its holder. A lock whose process has ended is removed.
 */
import type { Clock } from '../../clock.js'
import { AgentTasksError } from '../../errors.js'
import { nodeBuiltin } from '../../node-builtins.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../process-identity.js'
import { readRegular } from '../../regular-file.js'

/** How often and how long a lock is tried, in ms. */
const WAIT_MS = { step: 25, most: 300_000 } as const

/** The longest file, in bytes. */
const FILE_BYTES = 1024

interface Holder extends ProgramIdentity {
  /** Unique to each acquisition. */
  readonly token: string
}

/**
 * Holds the lock during a call.
 * @throws the reason of the signal if it aborts before the lock is held; AgentTasksError when another process holds it for five minutes
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
 * Only one process may remove the file of a dead holder: the one that holds a second lock, named by the token in that file. This prevents the removal
 * of a newer holder's file.
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
    // A link appears with its complete content and never replaces another file.
    linkSync(draft, file)
    return () => rmSync(file, { force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Undefined if the file does not exist. A file with invalid content counts as left by a dead process. */
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
    // Invalid content: see below.
  }
  return { pid: 0, start: '', boot: '', token: 'malformed' }
}
