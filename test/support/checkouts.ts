/** Real git repositories in temporary folders, and real programs in worktrees of them. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { processRunner, type OutputObject, type ProcessRunnerOptions } from '../../src/index.js'
import type { RunContext } from '../../src/engine/runner.js'
import type { WorktreeResult } from '../../src/runners/worktrees/worktree.js'
import { createRunContext, runInput, type RecordedContext } from './run-context.js'

/** A repository with one commit of `file`, and a folder for its worktrees. */
export interface Checkout {
  readonly folder: string
  readonly state: string
  git(...args: readonly string[]): string
  write(file: string, text: string): void
  /** The branches of tasks. */
  branches(): string[]
  /** The folders of worktrees. */
  worktrees(): string[]
}

/** The environment of git commands of tests, and of the programs. */
export function useState(): { readonly root: string; readonly state: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-worktrees-')))
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }))
  writeFileSync(
    join(root, 'gitconfig'),
    '[user]\nname = t\nemail = t@t\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n',
  )
  const state = join(root, 'state')
  vi.stubEnv('XDG_STATE_HOME', state)
  vi.stubEnv('GIT_CONFIG_GLOBAL', join(root, 'gitconfig'))
  vi.stubEnv('GIT_CONFIG_NOSYSTEM', '1')
  onTestFinished(() => void vi.unstubAllEnvs())
  return { root, state }
}

export function gitIn(folder: string, ...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 10_000,
  }).trim()
}

/** Makes a repository. */
export function checkout({ root, state } = useState(), name = 'repo', { commits = true } = {}): Checkout {
  const folder = join(root, name)
  mkdirSync(folder)
  const git = (...args: readonly string[]): string => gitIn(folder, ...args)
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  git('init', '-q')
  write('file', 'one\n')
  write('packages/a/file', 'a\n')
  write('.gitignore', 'ignored\n')
  if (commits) {
    git('add', '.')
    git('commit', '-q', '-m', 'one')
  }
  const parent = join(state, 'agent-tasks', 'worktrees')
  return {
    folder,
    state,
    git,
    write,
    branches: () =>
      git('for-each-ref', '--format=%(refname:short)', 'refs/heads/agent-tasks/').split('\n').filter(Boolean),
    worktrees: () =>
      existsSync(parent)
        ? readdirSync(parent).flatMap((one) => readdirSync(join(parent, one)).map((two) => join(parent, one, two)))
        : [],
  }
}

/** The runner of a shell script in a worktree. */
export const shell = (folder: string, script: string, options: Partial<ProcessRunnerOptions> = {}) =>
  processRunner({ command: 'sh', args: ['-c', script], cwd: folder, isolation: 'worktree', ...options })

export interface RanScript {
  readonly output: OutputObject & { readonly worktree: WorktreeResult }
  readonly context: RecordedContext
}

/** Runs a shell script as a task. */
export async function runScript(
  { folder }: Pick<Checkout, 'folder'>,
  script: string,
  {
    id = 'a',
    context = createRunContext(),
    also,
    ...options
  }: Partial<ProcessRunnerOptions> & {
    readonly id?: string
    readonly context?: RecordedContext
    readonly also?: Partial<RunContext>
  } = {},
): Promise<RanScript> {
  const runner = shell(folder, script, options)
  const output = await runner.run({ ...runInput(), id }, { ...context, ...also })
  return { output: output as RanScript['output'], context }
}

export const failure = (promise: Promise<unknown>): Promise<Error & { readonly code?: string }> =>
  promise.then(
    () => {
      throw new Error('it did not fail')
    },
    (error: unknown) => error as Error,
  )
