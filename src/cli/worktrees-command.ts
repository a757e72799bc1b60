/** `agent-tasks worktrees list|remove`: lists or removes the worktrees that tasks with `isolation: 'worktree'` have left in a repository. */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError } from '../errors.js'
import { unsavedIn, type Unsaved } from '../runners/worktrees/changes.js'
import { leftWorktrees, type LeftWorktree } from '../runners/worktrees/left-worktree.js'
import { findRepository } from '../runners/worktrees/repository.js'
import { removeWorktree } from '../runners/worktrees/worktree.js'
import { EXIT } from './exit-codes.js'
import { CommandEnd, describeError } from './failures.js'
import { formatAge, formatTable, oneLine } from './table.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface WorktreesOptions {
  readonly repository: string
  readonly force?: boolean
  readonly json?: boolean
}

export function addWorktreesCommand(program: Command, io: ProgramIO): void {
  const worktrees = program
    .command('worktrees')
    .description('the git worktrees that tasks have left in a repository (isolation: worktree)')
  const add = (name: string, isDefault = false) =>
    worktrees
      .command(name, { isDefault })
      .option('--repository <dir>', 'a folder of the repository', '.')
      .option('--json', 'print JSON, one worktree a line')
  add('list', true)
    .description('list the worktrees, and the processes that use them')
    .addHelpText('after', '\nExamples:\n  $ agent-tasks worktrees')
    .action((options: WorktreesOptions) => list(options, io))
  add('remove')
    .description('remove worktrees that no process uses, with their branches: all, or the given ones')
    .argument('[tasks...]', 'ids of tasks')
    .option('--force', 'also remove worktrees with files or commits that are only there; this work is lost')
    .addHelpText(
      'after',
      '\nA worktree is spared while its host or its program runs.\n\nExamples:\n  $ agent-tasks worktrees remove\n  $ agent-tasks worktrees remove --force 4711',
    )
    .action((tasks: string[], options: WorktreesOptions) => remove(tasks, options, io))
}

async function list({ repository, json }: WorktreesOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const { commonDir } = await findRepository(repository)
  const all = await Promise.all(leftWorktrees(commonDir).map(async (one) => ({ ...one, ...(await attempt(one)) })))
  if (json === true) for (const one of all) terminal.printJson(shown(one))
  else if (all.length === 0) terminal.say('There are no worktrees of tasks.')
  else {
    const rows = all.map(({ usedBy, commits, files, notes, path, ...one }) => [
      oneLine(taskOf({ notes, path }), 60),
      usedBy === undefined ? 'nobody' : String(usedBy),
      ...[commits, files].map((count) => (one.problem === undefined ? String(count) : '?')),
      notes === undefined ? '' : formatAge(notes.createdAt),
      path,
    ])
    formatTable(['TASK', 'USED BY', 'COMMITS', 'FILES', 'AGE', 'FOLDER'], rows).forEach(terminal.print)
  }
}

async function remove(tasks: string[], { repository, force, json }: WorktreesOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const found = await findRepository(repository)
  const all = leftWorktrees(found.commonDir)
  const unknown = tasks.find((id) => !all.some((one) => taskOf(one) === id))
  if (unknown !== undefined) {
    throw new InvalidInputError('tasks', unknown, 'the id of a task that `agent-tasks worktrees` lists')
  }
  let spared = 0
  for (const one of all.filter((each) => tasks.length === 0 || tasks.includes(taskOf(each)))) {
    const unsaved = await attempt(one)
    const reason = await removeOne()
    if (reason !== undefined) spared += 1
    if (json === true) {
      terminal.printJson({
        ...shown({ ...one, ...unsaved }),
        isRemoved: reason === undefined,
        ...omitUndefined({ reason }),
      })
    } else terminal.print(`${taskOf(one)}: ${reason === undefined ? 'removed' : `spared, because ${reason}`}`)

    async function removeOne(): Promise<string | undefined> {
      if (one.usedBy !== undefined) return `process ${one.usedBy} uses it`
      if (force !== true && unsaved.problem !== undefined) return unsaved.problem
      if (force !== true && unsaved.commits + unsaved.files > 0) {
        return `it has changes (commits: ${unsaved.commits}, files: ${unsaved.files}); --force removes them`
      }
      try {
        // git runs in the main repository, because the working directory may be the worktree that is removed.
        const from = { ...found, top: found.commonDir }
        await removeWorktree({ ...one, repository: from }, unsaved.tip, { clock: systemClock })
        return undefined
      } catch (error) {
        return describeError(error).message
      }
    }
  }
  if (all.length === 0 && json !== true) terminal.say('There are no worktrees of tasks.')
  if (tasks.length > 0 && spared > 0) throw new CommandEnd(EXIT.refused)
}

type Attempt = Unsaved & { readonly problem?: string }

/** The work that would be lost. If a worktree was not completed, nothing has run in it. */
const attempt = (one: LeftWorktree): Promise<Attempt> =>
  one.notes === undefined
    ? Promise.resolve({ commits: 0, files: 0, tip: undefined })
    : unsavedIn(one).catch((error: unknown) => ({
        commits: 0,
        files: 0,
        tip: undefined,
        problem: describeError(error).message,
      }))

const taskOf = ({ notes, path }: Pick<LeftWorktree, 'notes' | 'path'>): string => notes?.id ?? basename(path)

const shown = ({ notes, path, branch, usedBy, commits, files, problem }: LeftWorktree & Attempt) => ({
  task: taskOf({ notes, path }),
  path,
  branch,
  ...omitUndefined({ usedBy, base: notes?.base, createdAt: notes?.createdAt, problem }),
  ...(problem === undefined && { commits, files }),
})
