/** Tasks that continue others in their worktrees: U2. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type ProcessRunnerOptions } from '../../../src/index.js'
import { checkout, shell, type Checkout } from '../../support/checkouts.js'

const session: ProcessRunnerOptions['session'] = {
  from: 'json:id',
  resume: ['-c', 'echo "$1 $2 $(pwd)" >> log; echo {}', 'sh', '{session}', '{message}'],
}

/** A task `a` in a worktree, which writes a file there unless `script` does something else. */
async function ended(repo: Checkout, script = 'echo one > log; echo \'{"id":"s-1"}\'', more: object = {}) {
  const manager = new AsyncTaskManager()
  onTestFinished(() => manager.dispose())
  const runner = shell(`${repo.folder}/packages/a`, script, { session: session!, ...more })
  manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, runner)
  await manager.waitFor(['a'])
  return manager
}

it('U2: go on in the worktree of the ended task, on its branch, and keep it', async () => {
  const repo = checkout()
  const manager = await ended(repo)
  const [path = ''] = repo.worktrees()
  expect(manager.getTask('a')?.session).toEqual({ id: 's-1', cwd: join(path, 'packages/a') })
  const { id } = manager.continueTask('a', 'more')
  const { settled } = await manager.waitFor([id])
  expect(settled[0]?.output?.['worktree']).toMatchObject({ isKept: true, path, branch: 'agent-tasks/a', files: 1 })
  expect(readFileSync(join(path, 'packages/a/log'), 'utf8')).toBe(`one\ns-1 more ${path}/packages/a\n`)
  expect(repo.worktrees()).toEqual([path])
  expect(repo.branches()).toEqual(['agent-tasks/a'])
  expect(repo.git('worktree', 'list', '--porcelain')).not.toContain('locked')
  const last = manager.continueTask(id, 'again')
  await manager.waitFor([last.id])
  expect(readFileSync(join(path, 'packages/a/log'), 'utf8')).toMatch(/\ns-1 again .*\n$/)
})

it('U2: remove the worktree at their end if nothing has changed in it any more', async () => {
  const repo = checkout()
  const undo = { ...session, resume: ['-c', 'rm log; echo {}', '{session}', '{message}'] }
  const manager = await ended(repo, undefined, { session: undo })
  const { id } = manager.continueTask('a', 'undo')
  const { settled } = await manager.waitFor([id])
  expect(settled[0]?.output?.['worktree']).toMatchObject({ isKept: false })
  expect([repo.worktrees(), repo.branches()]).toEqual([[], []])
})

it('U2: are refused when the worktree is gone, before anything starts', async () => {
  const repo = checkout()
  const manager = await ended(repo, 'echo \'{"id":"s-1"}\'')
  expect(repo.worktrees()).toEqual([])
  expect(() => manager.continueTask('a', 'more')).toThrow(/its working directory ".*packages\/a" is gone/)
  expect(manager.getAllTasks()).toHaveLength(1)
})

it('U2: fail when a folder is there that is not the worktree any more', async () => {
  const repo = checkout()
  const manager = await ended(repo)
  const [path = ''] = repo.worktrees()
  repo.git('worktree', 'remove', '--force', path)
  repo.git('branch', '-D', 'agent-tasks/a')
  mkdirSync(join(path, 'packages/a'), { recursive: true })
  const { id } = manager.continueTask('a', 'more')
  expect((await manager.waitFor([id])).settled[0]).toMatchObject({ status: 'failed', errorCode: 'WORKTREE_FAILED' })
  rmSync(path, { recursive: true })
  repo.git('worktree', 'add', '-q', '-b', 'mine', path)
  mkdirSync(join(path, 'packages/a'), { recursive: true })
  const other = manager.continueTask('a', 'more')
  const { settled } = await manager.waitFor([other.id])
  expect(settled[0]).toMatchObject({ status: 'failed', errorCode: 'WORKTREE_FAILED' })
  expect(settled[0]?.error).toContain('it is no longer the worktree of the task to continue')
  expect(existsSync(join(path, 'packages/a/log'))).toBe(false)
})
