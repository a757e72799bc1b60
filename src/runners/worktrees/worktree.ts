/** Creates the worktree of a task. When the task ends, removes the worktree, or keeps it if the task has made changes. */
import { systemClock, type Clock } from '../../system/clock.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { changesIn } from './changes.js'
import { answer, git, GitError, gitOnFiles } from './git.js'
import { leftWorktrees, lockReason, writeNotes, type WorktreeNotes } from './left-worktree.js'
import { lockRepository } from './repository-lock.js'
import {
  BRANCHES,
  findStart,
  isDirty,
  refusal,
  tipOf,
  worktreeName,
  worktreesFolder,
  type Repository,
} from './repository.js'

/** A complete worktree that this process has locked. */
export interface Worktree {
  readonly repository: Repository
  readonly path: string
  readonly branch: string
  readonly gitDir: string
  notes: WorktreeNotes
}

export interface WorktreeResult {
  /** Whether the worktree was kept. If so, it is at `path`, and its commits are on `branch`. If not, the worktree and the branch were removed. */
  readonly isKept: boolean
  readonly path?: string
  readonly branch?: string
  /** The commit at which the worktree started. */
  readonly base: string
  readonly commits: number
  readonly files: number
  /** A sentence about a problem, if there was one. */
  readonly note?: string
}

interface Waiting {
  readonly clock: Clock
  readonly signal?: AbortSignal
}

/**
 * Opens the worktree of a task: creates it, or uses the worktree of an earlier attempt.
 * @param mayExist whether an earlier attempt of this task may have created a worktree
 * @param isResumed whether a program of this task is still running in the worktree
 * @throws AgentTasksError `WORKTREE_FAILED` if there can be no worktree
 * @throws the reason of the signal if it aborts
 */
export async function openWorktree(
  repository: Repository,
  {
    id,
    mayExist,
    isResumed,
    ...waiting
  }: Waiting & { readonly id: string; readonly mayExist: boolean; readonly isResumed: boolean },
): Promise<Worktree> {
  const { top, commonDir } = repository
  const name = worktreeName(id)
  const branch = `${BRANCHES}/${name}`
  const path = `${worktreesFolder(commonDir)}/${name}`
  const { existsSync, mkdirSync } = nodeBuiltin('node:fs')
  const wrap = (error: unknown): never => {
    throw error instanceof GitError ? refusal(top, error.message, error) : error
  }
  const made = await lockRepository(commonDir, waiting, async (): Promise<Worktree | Unfinished> => {
    const head = await findStart(repository)
    const tip = await tipOf({ folder: top }, branch)
    const left = leftWorktrees(commonDir).find((one) => one.path === path)
    if (!mayExist && (left !== undefined || tip !== undefined || existsSync(path))) {
      const how =
        'Remove them with `agent-tasks worktrees remove`, and what is left with git, or give the task another id'
      throw refusal(top, `branch ${branch} or folder ${path} is there from an earlier task. ${how}`)
    }
    if (left?.usedBy !== undefined && left.usedBy !== process.pid && !isResumed) {
      throw refusal(top, `process ${left.usedBy} uses ${path}`)
    }
    if (left?.notes !== undefined && existsSync(path)) {
      await unlock(top, path)
      await git({ folder: top }, 'worktree', 'lock', '--reason', lockReason(process.pid), path)
      return { repository, path, branch, gitDir: left.gitDir, notes: left.notes }
    }
    // Either the folder was removed, or the worktree was never completed. The commits on its branch are kept.
    if (left !== undefined) await removeFolder(top, path)
    mkdirSync(nodeBuiltin('node:path').dirname(path), { recursive: true, mode: 0o700 })
    const start = tip === undefined ? ['--no-track', '-b', branch, path, head] : [path, branch]
    const locked = ['--lock', '--reason', lockReason(process.pid)]
    await git({ folder: top }, 'worktree', 'add', '--quiet', '--no-checkout', ...locked, ...start)
    const gitDir = (await answer({ folder: path }, 'rev-parse', '--absolute-git-dir')) ?? ''
    const base = left?.notes?.base ?? (tip === undefined ? head : await git({ folder: top }, 'merge-base', head, tip))
    return { repository, path, branch, gitDir, base: base.trim() }
  }).catch(wrap)
  if ('notes' in made) return made
  try {
    // This runs without the lock. Each worktree has its own index, and writing the files of a large one takes long.
    await gitOnFiles({ folder: path, gitDir: made.gitDir }, 'reset', '--hard', '--quiet', '--no-recurse-submodules')
    const notes = { id, base: made.base, isPartial: await isDirty(top), createdAt: systemClock.now() }
    writeNotes(made.gitDir, notes)
    return { ...made, notes }
  } catch (error) {
    await removeWorktree(made, made.base, { clock: waiting.clock }).catch(() => undefined)
    return wrap(error)
  }
}

interface Unfinished extends Omit<Worktree, 'notes'> {
  readonly base: string
}

/** Closes a worktree at the end of its task. Removes it, unless it has changes or must be kept. Never throws. */
export async function closeWorktree(
  worktree: Worktree,
  {
    keep,
    clock,
    detached,
  }: { readonly keep: 'always' | 'changes'; readonly clock: Clock; readonly detached: readonly string[] },
): Promise<WorktreeResult> {
  const { repository, path, branch, notes } = worktree
  const { top, commonDir } = repository
  const { base, isPartial } = notes
  const said = isPartial ? [`uncommitted work in ${top} was not in it`] : []
  const isThere = nodeBuiltin('node:fs').existsSync(path)
  if (!isThere) said.push('its folder was removed while the task ran')
  const isUsed = isThere && detached.length > 0
  if (isUsed) said.push(`it was kept because processes that the program has detached run on: ${detached.join(', ')}`)
  let isKept: boolean
  let changes = { commits: 0, files: 0 }
  try {
    const { isChanged, ...counts } = await changesIn(worktree, base, commonDir)
    changes = counts
    isKept = isChanged || isUsed || (keep === 'always' && isThere)
    // If the task has made commits, the branch is kept.
    if (!isKept || !isThere) await removeWorktree(worktree, base, { clock })
    else await lockRepository(commonDir, { clock }, () => unlock(top, path))
  } catch (error) {
    isKept = true
    said.push(`it was kept because git failed (${error instanceof Error ? error.message : String(error)})`)
    await unlock(top, path)
  }
  const where = { branch, ...(isThere && { path }) }
  return { isKept, ...(isKept && where), base, ...changes, ...(said.length > 0 && { note: said.join('; ') }) }
}

/**
 * Removes a worktree with all its files. Removes its branch, too, if the branch is at the commit `at`.
 * @param at the commit; default: any
 * @throws GitError if git fails
 */
export function removeWorktree(
  { repository: { top, commonDir }, path, gitDir, branch }: Pick<Worktree, 'repository' | 'path' | 'gitDir' | 'branch'>,
  at: string | undefined,
  waiting: Waiting,
): Promise<void> {
  const { existsSync } = nodeBuiltin('node:fs')
  return lockRepository(commonDir, waiting, async () => {
    const user = leftWorktrees(commonDir).find((one) => one.path === path)?.usedBy
    if (user !== undefined && user !== process.pid) throw refusal(top, `process ${user} uses ${path}`)
    if (existsSync(gitDir)) await removeFolder(top, path)
    const tip = await tipOf({ folder: top }, branch)
    if (tip === undefined || tip !== (at ?? tip)) return
    await git({ folder: top }, 'update-ref', '-d', `refs/heads/${branch}`, tip)
  })
}

const removeFolder = (top: string, path: string): Promise<string> =>
  git({ folder: top }, 'worktree', 'remove', '--force', '--force', path)

async function unlock(top: string, path: string): Promise<void> {
  // Unlocking fails if a person has already unlocked the worktree.
  await git({ folder: top }, 'worktree', 'unlock', path).catch(() => undefined)
}
