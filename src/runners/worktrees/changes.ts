/** What a task has changed in its worktree. */
import { nodeBuiltin } from '../../system/node-builtins.js'
import { answer, git, gitOnFiles, type Place } from './git.js'
import type { LeftWorktree } from './left-worktree.js'
import { tipOf } from './repository.js'

/** The maximum depth of nested submodules. */
const MAX_DEPTH = 8

export interface Changes {
  readonly commits: number
  /** The number of files that the task has changed, added or removed. Uncommitted changes count, ignored files do not. */
  readonly files: number
  /** Whether work would be lost if the worktree and its branch were removed. */
  readonly isChanged: boolean
}

/**
 * Counts the changes in a worktree, including its submodules. If the folder of the worktree is gone, only the branch counts.
 * @param base the commit at which the worktree started
 * @throws GitError if git fails
 */
export async function changesIn(
  { path, gitDir, branch }: Pick<LeftWorktree, 'path' | 'gitDir' | 'branch'>,
  base: string,
  commonDir: string,
): Promise<Changes> {
  const tip = await tipOf({ folder: commonDir }, branch)
  const isThere = nodeBuiltin('node:fs').existsSync(path)
  // git gets the git directory by its path. The `.git` file in the folder is not used, because the program may have changed it.
  const place = isThere ? { folder: path, gitDir } : { folder: commonDir }
  const head = isThere ? await answer(place, 'rev-parse', '--verify', 'HEAD^{commit}') : undefined
  const ends = [head, tip].filter((end) => end !== undefined)
  const commits = Number(await git(place, 'rev-list', '--count', ...ends, '--not', base))
  const files = new Set<string>()
  if (head !== undefined) {
    const committed = await git(place, 'diff-tree', '-r', '--no-renames', '--name-only', '-z', base, head)
    for (const file of [...split(committed), ...(await filesIn(place, 0))]) files.add(file)
  }
  return { commits, files: files.size, isChanged: files.size > 0 || ends.some((end) => end !== base) }
}

/** The work that would be lost if a worktree and its branch were removed. */
export interface Unsaved {
  /** The number of commits that are on no other branch, tag or remote. */
  readonly commits: number
  /** The number of uncommitted files. */
  readonly files: number
  /** The commit at the head of the branch. */
  readonly tip: string | undefined
}

/**
 * Counts the unsaved work in the worktree of a task that has ended.
 * @throws GitError if git fails
 */
export async function unsavedIn({
  path,
  gitDir,
  branch,
}: Pick<LeftWorktree, 'path' | 'gitDir' | 'branch'>): Promise<Unsaved> {
  const place = { folder: path, gitDir }
  const isThere = nodeBuiltin('node:fs').existsSync(path)
  const tip = await tipOf({ folder: gitDir }, branch)
  const head = await answer({ folder: gitDir }, 'rev-parse', '--verify', 'HEAD^{commit}')
  const ends = [head, tip].filter((end) => end !== undefined)
  const others = [`--exclude=${branch}`, '--branches', '--remotes', '--tags']
  const commits = Number(await git({ folder: gitDir }, 'rev-list', '--count', ...ends, '--not', ...others))
  return { commits, files: isThere ? (await filesIn(place, 0)).length : 0, tip }
}

/** The paths of files with uncommitted changes, in a repository and its submodules. */
async function filesIn(place: Place, depth: number): Promise<string[]> {
  const status = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=dirty']
  // Each entry begins with two letters and a space.
  const files = split(await gitOnFiles(place, ...status)).map((entry) => entry.slice(3))
  for (const entry of split(await git(place, 'ls-files', '--stage', '-z'))) {
    const [, commit = '', name = ''] = /^160000 ([0-9a-f]+) \d\t(.*)$/s.exec(entry) ?? []
    const folder = `${place.folder}/${name}`
    // This looks into submodules itself, because git would apply the configuration of the submodule.
    if (name === '' || !nodeBuiltin('node:fs').existsSync(`${folder}/.git`)) continue
    const inside = await changesOfSubmodule({ folder }, commit, depth + 1).catch(() => [''])
    files.push(...inside.map((file) => `${name}/${file}`))
  }
  return files
}

/** Counts the changes of a submodule. A commit counts if no remote has it. */
async function changesOfSubmodule(place: Place, commit: string, depth: number): Promise<string[]> {
  if (depth > MAX_DEPTH) return ['']
  const own = await git(place, 'rev-list', '--max-count=1', '--all', 'HEAD', '--not', '--remotes', commit)
  return [...(own === '' ? [] : ['']), ...(await filesIn(place, depth))]
}

const split = (text: string): string[] => text.split('\0').filter((part) => part !== '')
