/**
 * The worktrees of tasks that a repository has. What is known of one is in its administrative folder (`worktrees/NAME` of the common git directory,
 * gitrepository-layout(5)): git removes it with the worktree. While a run uses it, the reason of its lock names the process of the host.
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

/** How much of an id is noted, in characters. */
const SHOWN_ID_CHARS = 1000

/** What is known of a worktree once it is complete. */
export interface WorktreeNotes {
  /** The beginning of the id of the task. */
  readonly id: string
  /** The commit that it started from. */
  readonly base: string
  /** Whether the checkout had work that was not committed, and so is not in it. */
  readonly isPartial: boolean
  /** When it was made, in ms since the epoch. */
  readonly createdAt: number
  /** The leader of the process group that runs in it, or ran. */
  readonly program?: ProgramIdentity
}

/** A worktree that is there, or of which only the administrative folder is left. */
export interface LeftWorktree {
  /** Its administrative folder. */
  readonly gitDir: string
  readonly path: string
  readonly branch: string
  /** Undefined when it was never completed: nothing has run in it. */
  readonly notes: WorktreeNotes | undefined
  /** The process that uses it: its host, or its program; undefined when it may be removed. */
  readonly usedBy: number | undefined
}

/** The reason of a lock. @param pid of a process that runs */
export const lockReason = (pid: number): string => `${BRANCHES} ${JSON.stringify(identityOf(pid))}`

/** Says what is known of a worktree: as a whole, or not at all. */
export function writeNotes(gitDir: string, notes: WorktreeNotes): void {
  const { renameSync, rmSync, writeFileSync } = nodeBuiltin('node:fs')
  const draft = `${gitDir}/${NOTES}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, JSON.stringify({ ...notes, id: cutText(notes.id, SHOWN_ID_CHARS) }), { mode: 0o600, flag: 'wx' })
  renameSync(draft, `${gitDir}/${NOTES}`)
}

/** The worktrees of tasks, by their names. Other worktrees are left out. */
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
      // A program can write to these files. What has another path is not removed as a worktree of a task.
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

/** A process runs, or what it has left in its group. */
export function isUsing(identity: ProgramIdentity): boolean {
  const state = stateOf(identity)
  // A pid is not given to another process while a group has its number.
  return state === 'alive' || (hasGroups && state === 'gone' && countMembers(identity.pid) > 0)
}

/** Notes that were damaged name no commit: such a worktree counts as changed. */
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
