/** The repository of a folder, and the location of its worktrees. */
import { AgentTasksError } from '../../errors.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { answer, GitError, gitOnFiles, type Place } from './git.js'

/** The prefix of the names of all task branches (`agent-tasks/…`). */
export const BRANCHES = 'agent-tasks'

export interface Repository {
  /** The root folder of the checkout. */
  readonly top: string
  /** The git directory that all worktrees of the repository share. */
  readonly commonDir: string
  /** The path of the folder within the checkout. It is empty or ends with `/`. */
  readonly prefix: string
}

/**
 * @param given a folder; a relative one is in the working directory
 * @throws AgentTasksError `WORKTREE_FAILED` if the folder is in no checkout
 */
export async function findRepository(given: string): Promise<Repository> {
  const folder = nodeBuiltin('node:path').resolve(given)
  try {
    const ask = async (name: string) => (await answer({ folder }, 'rev-parse', '--path-format=absolute', name)) ?? ''
    const commonDir = await ask('--git-common-dir')
    if ((await ask('--is-inside-work-tree')) !== 'true') {
      throw refusal(folder, 'it is in no working tree: the repository is bare')
    }
    return { commonDir, top: await ask('--show-toplevel'), prefix: await ask('--show-prefix') }
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    const isMissing = !nodeBuiltin('node:fs').existsSync(folder)
    const isNone = error.message.includes('not a git repository')
    throw refusal(
      folder,
      isMissing ? 'it does not exist' : isNone ? 'it is in no git repository' : error.message,
      error,
    )
  }
}

/**
 * Returns the commit of HEAD.
 * @throws AgentTasksError `WORKTREE_FAILED` if the repository cannot have a task branch
 */
export async function findStart({ top }: Repository): Promise<string> {
  const head = await answer({ folder: top }, 'rev-parse', '--verify', '--quiet', 'HEAD^{commit}')
  if (head === undefined) throw refusal(top, 'its repository has no commit yet')
  if ((await tipOf({ folder: top }, BRANCHES)) !== undefined) {
    throw refusal(
      top,
      `it has a branch named ${BRANCHES}, so git allows no branch named ${BRANCHES}/…. Rename that branch`,
    )
  }
  return head
}

/** The commit of a branch; undefined if there is no such branch. */
export const tipOf = (place: Place, branch: string): Promise<string | undefined> =>
  answer(place, 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`)

export async function isDirty(top: string): Promise<boolean> {
  return (await gitOnFiles({ folder: top }, 'status', '--porcelain', '--ignore-submodules=dirty')) !== ''
}

export const refusal = (folder: string, reason: string, cause?: unknown): AgentTasksError =>
  new AgentTasksError('WORKTREE_FAILED', `There can be no worktree of ${JSON.stringify(folder)}: ${reason}.`, { cause })

/** The unique name of a task's worktree, valid in branch names and in paths on every system. */
export const worktreeName = (id: string): string =>
  /^[a-z0-9][a-z0-9_-]{0,63}$/.test(id) ? id : `${readable(id)}.${digest(id)}`

/** The folder for the worktrees of a repository: below `XDG_STATE_HOME`, or `~/.local/state`. */
export function worktreesFolder(commonDir: string): string {
  const path = nodeBuiltin('node:path')
  const { XDG_STATE_HOME: state = '' } = process.env
  const base = path.isAbsolute(state) ? state : path.join(nodeBuiltin('node:os').homedir(), '.local', 'state')
  const name = path.basename(path.basename(commonDir) === '.git' ? path.dirname(commonDir) : commonDir)
  return path.join(base, 'agent-tasks', 'worktrees', `${readable(name)}.${digest(commonDir)}`)
}

function readable(text: string): string {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? ['task']
  return words.join('-').slice(0, 40)
}

const digest = (text: string): string =>
  nodeBuiltin('node:crypto').createHash('sha256').update(text).digest('hex').slice(0, 16)
