/** Runs a program in a git worktree of its own (`isolation: 'worktree'`). */
import type { OutputObject } from '../../../machines/records.js'
import type { RunContext, RunDurability, RunInput } from '../../engine/runner.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import { identityOf, type ProgramIdentity } from '../../system/process-identity.js'
import { isWithin } from '../../system/regular-file.js'
import type { ProcessSettings } from '../process-options.js'
import { withoutLocalVariables } from './git.js'
import { isUsing, leftWorktrees, writeNotes } from './left-worktree.js'
import { findRepository, refusal, type Repository } from './repository.js'
import { closeWorktree, openWorktree, type Worktree } from './worktree.js'

/** How long the processes of a killed program may take to end, and how often this is checked, in ms. */
const STOP_MS = { most: 5000, step: 10 } as const

/** The runs of this process. The key names the repository and the task. */
const running = new Map<string, Promise<unknown>>()

/**
 * Runs a program in the worktree of its task, in the folder that corresponds to its working directory.
 * @param run runs the program with the settings and the context for the worktree
 * @throws AgentTasksError `WORKTREE_FAILED` if the worktree could not be opened; the program did not run then
 */
export async function runInWorktree(
  settings: ProcessSettings,
  input: RunInput,
  context: RunContext,
  run: (settings: ProcessSettings, context: RunContext) => Promise<OutputObject>,
): Promise<OutputObject> {
  const { clock, cwd = process.cwd() } = settings
  const { isResumed = false, isRepeated = false } = context.durability ?? {}
  const found = await findRepository(cwd)
  const { repository, id } = context.previous === undefined ? { repository: found, id: input.id } : worktreeAt(found)
  const key = JSON.stringify([repository.commonDir, input.id])
  const start = async (): Promise<OutputObject> => {
    const worktree = await openWorktree(repository, {
      id,
      mayExist: context.previous !== undefined || isResumed || isRepeated || context.attempt > 1,
      isResumed,
      clock,
      signal: context.signal,
    })
    return runIn(worktree, settings, context, run)
  }
  // The earlier run of a retried task may have been abandoned at its deadline, and still be ending.
  const turn = (context.attempt > 1 ? running.get(key) : undefined)?.then(start) ?? start()
  const ended = turn.then(
    () => undefined,
    () => undefined,
  )
  running.set(key, ended)
  try {
    return await turn
  } finally {
    if (running.get(key) === ended) running.delete(key)
  }
}

/**
 * Returns the worktree whose checkout this is, and its task.
 * @throws AgentTasksError `WORKTREE_FAILED` if it is no longer the worktree of this task
 */
function worktreeAt({ top, commonDir, prefix }: Repository): { readonly repository: Repository; readonly id: string } {
  const path = nodeBuiltin('node:path')
  const left = leftWorktrees(commonDir).find((one) => one.path === top)
  if (left?.notes === undefined) throw refusal(top, 'it is no longer the worktree of the task to continue')
  // Git cannot remove a worktree when it runs inside the worktree, so it runs in the main checkout.
  const main = path.basename(commonDir) === '.git' ? path.dirname(commonDir) : commonDir
  return { repository: { top: main, commonDir, prefix }, id: left.notes.id }
}

async function runIn(
  worktree: Worktree,
  settings: ProcessSettings,
  context: RunContext,
  run: (settings: ProcessSettings, context: RunContext) => Promise<OutputObject>,
): Promise<OutputObject> {
  const { clock, env, keep } = settings
  /** The processes that the program has detached. They run on, and may write in the worktree. */
  let detached: readonly string[] = []
  const end = async () => {
    const isBusy = (): boolean => worktree.notes.program !== undefined && isUsing(worktree.notes.program)
    for (let waited = 0; isBusy() && waited < STOP_MS.most; waited += STOP_MS.step) {
      await new Promise((resolve) =>
        clock.setTimeout(() => resolve(undefined), STOP_MS.step, { name: 'end of a process group', kind: 'poll' }),
      )
    }
    return closeWorktree(worktree, { clock, detached, keep: isBusy() ? 'always' : keep })
  }
  try {
    const own: ProcessSettings = {
      ...settings,
      cwd: folderIn(worktree),
      env: { ...withoutLocalVariables(process.env), ...env },
      onDetached: (names) => (detached = names),
    }
    const output = await run(own, noting(worktree, context))
    return { ...output, worktree: await end() }
  } catch (error) {
    const { isKept, path, branch, commits, files } = await end()
    if (!isKept) throw error
    const kept = `\nIts work is kept in ${path ?? 'no folder'} on branch ${branch} (commits: ${commits}, files: ${files}).`
    context.append(`${kept}\n`)
    if (error instanceof Error) error.message += kept
    throw error
  }
}

/** The folder in a worktree that corresponds to the working directory. */
function folderIn({ repository, path }: Worktree): string {
  const { realpathSync, statSync } = nodeBuiltin('node:fs')
  const folder = `${path}/${repository.prefix}`
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
  // A symbolic link in the repository may lead to a folder outside the worktree.
  if (isFolder && isWithin(realpathSync(path), realpathSync(folder))) return folder
  throw refusal(repository.top, `its last commit does not contain the folder ${repository.prefix}`)
}

/** Returns a context that notes which program runs in the worktree, so that nobody removes the worktree meanwhile. */
function noting(worktree: Worktree, context: RunContext): RunContext {
  const note = (program: ProgramIdentity | undefined): void => {
    if (program === undefined) return
    worktree.notes = { ...worktree.notes, program }
    writeNotes(worktree.gitDir, worktree.notes)
  }
  const { durability } = context
  const setProgram: RunContext['setProgram'] = (facts) => {
    if (facts.pid !== undefined) note(identityOf(facts.pid))
    context.setProgram?.(facts)
  }
  const saveProgram: RunDurability['saveProgram'] = (program) => {
    note(program.identity)
    return durability?.saveProgram(program) ?? Promise.resolve()
  }
  // The other fields of a context are getters. A copy would read them too early, so the new context inherits them.
  return Object.create(context, {
    setProgram: { value: setProgram },
    ...(durability && {
      durability: { value: Object.create(durability, { saveProgram: { value: saveProgram } }) as RunDurability },
    }),
  }) as RunContext
}
