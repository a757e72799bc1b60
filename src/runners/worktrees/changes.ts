/** What a task has changed in its worktree. */
import { nodeBuiltin } from '../../node-builtins.js'
import { answer, git, gitOnFiles, type Place } from './git.js'
import type { LeftWorktree } from './left-worktree.js'
import { tipOf } from './repository.js'

/** How many repositories may be inside one another. */
const MAX_DEPTH = 8

/** What a task has changed. */
export interface Changes {
  /** How many commits it has made. */
  readonly commits: number
  /** How many files it has changed, added or removed, in these commits or without one. Ignored files do not count. */
  readonly files: number
  /** Whether anything would be lost with the worktree and its branch. */
  readonly isChanged: boolean
}

/**
 * Looks at a worktree, also into its submodules. Of one whose folder is gone there is the branch.
 * @param base the commit that it started from
 * @throws GitError for what cannot be looked at
 */
export async function changesIn(
  { path, gitDir, branch }: Pick<LeftWorktree, 'path' | 'gitDir' | 'branch'>,
  base: string,
  commonDir: string,
): Promise<Changes> {
  const tip = await tipOf({ folder: commonDir }, branch)
  const isThere = nodeBuiltin('node:fs').existsSync(path)
  // Not by the file `.git` in it, which the program may have changed.
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

/** What would be lost with a worktree and its branch. */
export interface Unsaved {
  /** How many commits no other branch, tag or remote has. */
  readonly commits: number
  /** How many files are not committed. */
  readonly files: number
  /** The commit of its branch. */
  readonly tip: string | undefined
}

/** Looks at a worktree whose task has ended. @throws GitError for what cannot be looked at */
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

/** The paths of the files that are not committed as they are, in a repository and its submodules. */
async function filesIn(place: Place, depth: number): Promise<string[]> {
  const status = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=dirty']
  // Each begins with two letters and a space.
  const files = split(await gitOnFiles(place, ...status)).map((entry) => entry.slice(3))
  for (const entry of split(await git(place, 'ls-files', '--stage', '-z'))) {
    const [, commit = '', name = ''] = /^160000 ([0-9a-f]+) \d\t(.*)$/s.exec(entry) ?? []
    const folder = `${place.folder}/${name}`
    // git itself would look into it with the configuration of the submodule.
    if (name === '' || !nodeBuiltin('node:fs').existsSync(`${folder}/.git`)) continue
    const inside = await changesOfSubmodule({ folder }, commit, depth + 1).catch(() => [''])
    files.push(...inside.map((file) => `${name}/${file}`))
  }
  return files
}

/** A submodule has commits of its own where no remote has them. */
async function changesOfSubmodule(place: Place, commit: string, depth: number): Promise<string[]> {
  if (depth > MAX_DEPTH) return ['']
  const own = await git(place, 'rev-list', '--max-count=1', '--all', 'HEAD', '--not', '--remotes', commit)
  return [...(own === '' ? [] : ['']), ...(await filesIn(place, depth))]
}

const split = (text: string): string[] => text.split('\0').filter((part) => part !== '')
