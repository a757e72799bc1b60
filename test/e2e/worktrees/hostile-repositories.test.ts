/** Repositories whose configuration would run programs: nothing of it runs, when a worktree is made and when it is looked at. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { findRepository } from '../../../src/runners/worktrees/repository.js'
import { leftWorktrees } from '../../../src/runners/worktrees/left-worktree.js'
import { checkout, failure, gitIn, runScript, type Checkout } from '../../support/checkouts.js'

/** A program that says that it ran. */
function trap({ state }: Checkout): { readonly command: string; readonly hasRun: () => boolean } {
  mkdirSync(state, { recursive: true })
  const command = join(state, '../trap')
  writeFileSync(command, `#!/bin/sh\ntouch '${command}.ran'\n`)
  chmodSync(command, 0o755)
  return { command, hasRun: () => existsSync(`${command}.ran`) }
}

const hooks = ['post-checkout', 'reference-transaction', 'post-index-change', 'fsmonitor-watchman', 'pre-auto-gc']

it('runs no hooks', async () => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  for (const hook of hooks) {
    writeFileSync(join(repo.folder, '.git/hooks', hook), `#!/bin/sh\nexec '${command}' </dev/null\n`, { mode: 0o755 })
  }
  await runScript(repo, 'touch new', { id: 'kept' })
  await runScript(repo, 'true', { id: 'removed' })
  expect(hasRun()).toBe(false)
  // They would have run otherwise.
  repo.git('worktree', 'add', '-q', join(repo.state, 'w'))
  expect(hasRun()).toBe(true)
})

it('runs no hooks of another folder, and no file-system monitor', async () => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  mkdirSync(join(repo.state, 'hooks'))
  writeFileSync(join(repo.state, 'hooks/post-checkout'), `#!/bin/sh\nexec '${command}' </dev/null\n`, { mode: 0o755 })
  repo.git('config', 'core.hooksPath', join(repo.state, 'hooks'))
  repo.git('config', 'core.fsmonitor', command)
  await runScript(repo, 'true')
  expect(hasRun()).toBe(false)
  repo.git('status')
  expect(hasRun()).toBe(true)
})

it.each(['clean', 'smudge', 'process'])('runs no %s filter of the repository', async (field) => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  repo.write('.gitattributes', '* filter=a.b\n')
  repo.git('add', '.')
  repo.git('commit', '-q', '-m', 'attributes')
  repo.git('config', `filter.a.b.${field}`, command)
  repo.git('config', 'filter.a.b.required', 'true')
  const { output } = await runScript(repo, 'test "$(cat file)" = one; touch file')
  expect(output.worktree.isKept).toBe(false)
  expect(hasRun()).toBe(false)
})

it('runs no filter that a program has configured, also not in an included file or in a submodule', async () => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  const sub = checkout({ root: join(repo.state, '..'), state: repo.state }, 'library')
  repo.git('submodule', '--quiet', 'add', sub.folder, 'sub')
  repo.git('commit', '-q', '-m', 'sub')
  const script = `
    echo '* filter=f' > .gitattributes
    printf '[filter "f"]\\n clean = ${command}\\n' > included
    git config include.path "$PWD/included"
    git submodule --quiet update --init
    cd sub
    echo '* filter=g' > .gitattributes
    git config filter.g.clean '${command}'
    git config core.fsmonitor '${command}'
    sleep 1
    echo changed > file; echo changed > ../file`
  const { output } = await runScript(repo, script)
  expect(output.worktree).toMatchObject({ isKept: true, files: 5 })
  expect(hasRun()).toBe(false)
  gitIn(output.worktree.path!, 'status')
  expect(hasRun()).toBe(true)
})

it('runs the filters of the user', async () => {
  const repo = checkout()
  repo.write('.gitattributes', 'file filter=user\n')
  repo.git('add', '.')
  repo.git('commit', '-q', '-m', 'attributes')
  repo.git('config', '--global', 'filter.user.smudge', 'tr a-z A-Z')
  repo.git('config', '--global', 'filter.user.clean', 'tr A-Z a-z')
  const { output } = await runScript(repo, 'cat file')
  expect(output).toMatchObject({ final_message: 'ONE', worktree: { isKept: false } })
})

it('runs no program of a worktree as a filter of the user, whatever PATH has', async () => {
  const repo = checkout()
  repo.write('.gitattributes', 'file filter=user\n')
  repo.write('tr', `#!/bin/sh\ntouch '${repo.state}.ran'\ncat\n`)
  repo.git('add', '.')
  repo.git('update-index', '--chmod=+x', 'tr')
  repo.git('commit', '-q', '-m', 'attributes')
  repo.git('config', '--global', 'filter.user.clean', 'tr A-Z a-z')
  vi.stubEnv('PATH', `.:${process.env['PATH']}`)
  await runScript(repo, 'touch -d yesterday file')
  expect(existsSync(`${repo.state}.ran`)).toBe(false)
})

it('fetches nothing', async () => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  repo.git('config', 'extensions.partialClone', 'origin')
  repo.git('config', 'core.repositoryFormatVersion', '1')
  repo.git('config', 'remote.origin.promisor', 'true')
  repo.git('config', 'remote.origin.url', `ext::${command}`)
  repo.git('config', 'protocol.ext.allow', 'always')
  const blob = repo.git('rev-parse', 'HEAD:file')
  const { rmSync } = await import('node:fs')
  rmSync(join(repo.folder, '.git/objects', blob.slice(0, 2), blob.slice(2)))
  const error = await failure(runScript(repo, 'true'))
  expect(error).toMatchObject({ code: 'WORKTREE_FAILED' })
  expect(hasRun()).toBe(false)
  expect(repo.worktrees()).toEqual([])
  expect(repo.branches()).toEqual([])
  try {
    repo.git('cat-file', '-p', blob)
  } catch {
    // It prints nothing that git understands.
  }
  expect(hasRun()).toBe(true)
})

it('takes no setting of the environment for the repository of a task', async () => {
  const repo = checkout()
  const { command, hasRun } = trap(repo)
  vi.stubEnv('GIT_CONFIG_COUNT', '1')
  vi.stubEnv('GIT_CONFIG_KEY_0', 'core.fsmonitor')
  vi.stubEnv('GIT_CONFIG_VALUE_0', command)
  await runScript(repo, 'true')
  expect(hasRun()).toBe(false)
})

it('a worktree whose administrative folder names another path is no worktree of a task', async () => {
  const repo = checkout()
  const { output } = await runScript(repo, 'touch new')
  const { commonDir } = await findRepository(repo.folder)
  const [left] = leftWorktrees(commonDir)
  expect(left).toMatchObject({ path: output.worktree.path, notes: { id: 'a' }, usedBy: undefined })
  writeFileSync(join(left!.gitDir, 'gitdir'), `${repo.folder}/.git\n`)
  expect(leftWorktrees(commonDir)).toEqual([])
})
