/**
 * The existing worktrees of tasks in a repository. Notes about each are in its administrative folder (`worktrees/NAME` of the common git directory,
 * gitrepository-layout(5)), which git removes with the worktree. While a run uses a worktree, the reason of its lock names the host's process.
 */
import { countMembers } from '../../engine/group-members.js'
import { hasGroups } from '../../engine/process-group.js'
import { nodeBuiltin } from '../../node-builtins.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../process-identity.js'
import { readRegular } from '../../regular-file.js'
import { cutText } from '../../text/cut-text.js'
import { BRANCHES, worktreesFolder } from './repository.js'

const NOTES = 'agent-tasks.json'

/** The longest file that is read, in bytes. */
const FILE_BYTES = 65_536

/** How much of an id is stored, in characters. */
const SHOWN_ID_CHARS = 1000

/** Notes about a worktree, written once it is complete. */
export interface WorktreeNotes {
  /** The id of the task, possibly shortened. */
  readonly id: string
  /** The commit at which it started. */
  readonly base: string
  /** Whether the checkout had uncommitted work, which is not in the worktree. */
  readonly isPartial: boolean
  /** When it was created, in ms since the epoch. */
  readonly createdAt: number
  /** The leader of the process group that runs or ran in it. */
  readonly program?: ProgramIdentity
}

/** A worktree, or its administrative folder if only that is left. */
export interface LeftWorktree {
  /** Its administrative folder. */
  readonly gitDir: string
  readonly path: string
  readonly branch: string
  /** Undefined if it was never completed; no program has run in it then. */
  readonly notes: WorktreeNotes | undefined
  /** The process that uses it, a host or a program. Undefined if it may be removed. */
  readonly usedBy: number | undefined
}

/**
 * The reason of a lock.
 * @param pid of a running process
 */
export const lockReason = (pid: number): string => `${BRANCHES} ${JSON.stringify(identityOf(pid))}`

/** Writes the notes of a worktree atomically. */
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
      // A program can write to these files. Only a folder at the expected path is treated as a task's worktree.
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

/** Whether the process or another process of its group is running. */
export function isUsing(identity: ProgramIdentity): boolean {
  const state = stateOf(identity)
  // The system does not reuse a pid while a group has that number.
  return state === 'alive' || (hasGroups && state === 'gone' && countMembers(identity.pid) > 0)
}

/** Damaged notes contain no commit; such a worktree counts as changed. */
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
