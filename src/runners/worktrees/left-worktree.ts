/**
 * The worktrees of tasks that exist in a repository. Notes about a worktree are in its administrative folder (`worktrees/NAME` of the common git
 * directory, gitrepository-layout(5)). git removes this folder with the worktree. While a run uses a worktree, the worktree is locked, and the reason of
 * the lock names the process of the host.
 */
import { countMembers } from '../../engine/group-members.js'
import { hasGroups } from '../../engine/process-group.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../system/process-identity.js'
import { readRegular } from '../../system/regular-file.js'
import { cutText } from '../../data/cut-text.js'
import { BRANCHES, worktreesFolder } from './repository.js'

const NOTES = 'agent-tasks.json'

/** The maximum number of bytes that are read of a file. */
const FILE_BYTES = 65_536

/** The maximum number of characters of an id that are stored. */
const SHOWN_ID_CHARS = 1000

/** The notes about a worktree. They are written when the worktree is complete. */
export interface WorktreeNotes {
  /** The id of the task. It may be shortened. */
  readonly id: string
  /** The commit at which the worktree started. */
  readonly base: string
  /** Whether the user's checkout had uncommitted work, which the worktree does not contain. */
  readonly isPartial: boolean
  /** When the worktree was created, in ms since the epoch. */
  readonly createdAt: number
  /** The leader of the process group that runs in the worktree, or ran there last. */
  readonly program?: ProgramIdentity
}

/** A worktree, or its administrative folder if only that is left. */
export interface LeftWorktree {
  readonly gitDir: string
  readonly path: string
  readonly branch: string
  /** The notes; undefined if the worktree was never completed. In that case, no program has run in it. */
  readonly notes: WorktreeNotes | undefined
  /** The pid of the process that uses the worktree: a host or a program. Undefined if the worktree may be removed. */
  readonly usedBy: number | undefined
}

/**
 * The reason of a lock.
 * @param pid of a running process
 */
export const lockReason = (pid: number): string => `${BRANCHES} ${JSON.stringify(identityOf(pid))}`

/** Writes the notes of a worktree, so that a reader never finds half of them. */
export function writeNotes(gitDir: string, notes: WorktreeNotes): void {
  const { renameSync, rmSync, writeFileSync } = nodeBuiltin('node:fs')
  const draft = `${gitDir}/${NOTES}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, JSON.stringify({ ...notes, id: cutText(notes.id, SHOWN_ID_CHARS) }), { mode: 0o600, flag: 'wx' })
  renameSync(draft, `${gitDir}/${NOTES}`)
}

/** The worktrees of tasks, by name. Other worktrees are left out. */
export function leftWorktrees(commonDir: string): LeftWorktree[] {
  const { existsSync, readdirSync } = nodeBuiltin('node:fs')
  const path = nodeBuiltin('node:path')
  const parent = `${commonDir}/worktrees`
  if (!existsSync(parent)) return []
  return readdirSync(parent)
    .sort()
    .flatMap((name): LeftWorktree[] => {
      const gitDir = `${parent}/${name}`
      const folder = path.dirname((readRegular(`${gitDir}/gitdir`, FILE_BYTES) ?? '').trim())
      // A program can write to these files. So only a folder at the expected path counts as the worktree of a task.
      if (path.basename(path.dirname(folder)) !== path.basename(worktreesFolder(commonDir))) return []
      const notes = toNotes(readRegular(`${gitDir}/${NOTES}`, FILE_BYTES), path.basename(folder))
      const [, host] = /^agent-tasks (.+)$/.exec((readRegular(`${gitDir}/locked`, FILE_BYTES) ?? '').trim()) ?? []
      if (notes === undefined && host === undefined) return []
      const users = [toIdentity(parsed(host)), notes?.program].filter((one) => one !== undefined)
      return [
        {
          gitDir,
          path: folder,
          notes,
          branch: `${BRANCHES}/${path.basename(folder)}`,
          usedBy: users.find(isUsing)?.pid,
        },
      ]
    })
}

/** Whether the program, or another process of its group, is running. */
export function isUsing(identity: ProgramIdentity): boolean {
  const state = stateOf(identity)
  // The system does not give a pid to another process while a process group has this number.
  return state === 'alive' || (hasGroups && state === 'gone' && countMembers(identity.pid) > 0)
}

/** Damaged notes contain no commit. The worktree then counts as changed, so it is not removed. */
function toNotes(text: string | undefined, name: string): WorktreeNotes | undefined {
  if (text === undefined) return undefined
  const { id, base, isPartial, createdAt, program } = (parsed(text) ?? {}) as Partial<WorktreeNotes>
  const identity = toIdentity(program)
  return {
    id: typeof id === 'string' ? id : name,
    base: typeof base === 'string' && /^[0-9a-f]{40,64}$/.test(base) ? base : 'unknown',
    isPartial: isPartial === true,
    createdAt: typeof createdAt === 'number' ? createdAt : 0,
    ...(identity !== undefined && { program: identity }),
  }
}

function toIdentity(value: unknown): ProgramIdentity | undefined {
  const { pid, start, boot } = (value ?? {}) as Partial<ProgramIdentity>
  if (!Number.isSafeInteger(pid) || (pid ?? 0) < 1) return undefined
  return typeof start === 'string' && typeof boot === 'string' ? { pid: pid ?? 0, start, boot } : undefined
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return undefined
  }
}
