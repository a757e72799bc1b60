/** Programs in worktrees of their own: real programs and real git. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { processRunner } from '../../../src/index.js'
import { leftWorktrees } from '../../../src/runners/worktrees/left-worktree.js'
import { findRepository, worktreeName } from '../../../src/runners/worktrees/repository.js'
import { run } from '../../unit/cli/command-line.js'
import { createRunContext } from '../../support/run-context.js'
import { checkout, failure, gitIn, runScript, useState } from '../../support/checkouts.js'

const hashed = /^[a-z0-9-]{1,41}\.[0-9a-f]{16}$/

it('runs outside of the checkout, at HEAD, on a branch of its own, and leaves nothing when nothing has changed', async () => {
  const repo = checkout()
  const head = repo.git('rev-parse', 'HEAD')
  const { output } = await runScript(repo, 'pwd -P; git rev-parse --abbrev-ref HEAD; git rev-parse HEAD; cat file')
  const [path = '', ...lines] = String(output.final_message).split('\n')
  expect(path.startsWith(`${repo.state}/agent-tasks/worktrees/repo.`)).toBe(true)
  expect(path.endsWith('/a')).toBe(true)
  expect(lines).toEqual(['agent-tasks/a', head, 'one'])
  expect(output.worktree).toEqual({ isKept: false, base: head, commits: 0, files: 0 })
  expect(repo.branches()).toEqual([])
  expect(repo.worktrees()).toEqual([])
  expect(repo.git('worktree', 'list').split('\n')).toHaveLength(1)
  expect(existsSync(join(repo.folder, '.git/worktrees/a'))).toBe(false)
  expect(existsSync(join(repo.folder, '.git/agent-tasks.lock'))).toBe(false)
})

it('keeps commits and files, unlocked, and says how many', async () => {
  const repo = checkout()
  const { output } = await runScript(
    repo,
    'echo two >> file; git commit -qam two; echo three > new; mkdir d; echo 4 > d/x',
  )
  const { worktree } = output
  expect(worktree).toMatchObject({ isKept: true, branch: 'agent-tasks/a', commits: 1, files: 3 })
  expect(worktree).not.toHaveProperty('note')
  expect(repo.worktrees()).toEqual([worktree.path])
  expect(repo.git('show', 'agent-tasks/a:file')).toBe('one\ntwo')
  expect(readFileSync(join(repo.folder, 'file'), 'utf8')).toBe('one\n')
  // git removes it without force, once it is clean.
  rmSync(join(worktree.path!, 'new'))
  rmSync(join(worktree.path!, 'd'), { recursive: true })
  repo.git('worktree', 'remove', worktree.path!)
})

it.each([
  ['a commit alone', 'git commit -q --allow-empty -m two'],
  ['a file that is not tracked', 'touch new'],
  ['a file in the index', 'touch new; git add new'],
  ['a changed file', 'echo two > file'],
  ['a removed file', 'rm file'],
  ['a mode', 'chmod +x file'],
  ['a commit on no branch', 'git checkout -q --detach; git commit -q --allow-empty -m two'],
  ['a commit on another branch', 'git checkout -q -b other; git commit -q --allow-empty -m two'],
  ['a repository inside', 'git init -q inside; cd inside; git commit -q --allow-empty -m in'],
  ['what status.showUntrackedFiles hides', 'git config status.showUntrackedFiles no; touch new'],
])('keeps a worktree for %s', async (_name, script) => {
  const repo = checkout()
  const { output } = await runScript(repo, script)
  expect(output.worktree.isKept).toBe(true)
  expect(existsSync(output.worktree.path!)).toBe(true)
})

it('removes a worktree with ignored files only', async () => {
  const repo = checkout()
  expect((await runScript(repo, 'echo x > ignored')).output.worktree.isKept).toBe(false)
  expect(repo.worktrees()).toEqual([])
})

it('keeps every worktree with keep: always', async () => {
  const repo = checkout()
  const { output } = await runScript(repo, 'true', { keep: 'always' })
  expect(output.worktree).toMatchObject({ isKept: true, commits: 0, files: 0, branch: 'agent-tasks/a' })
  expect(repo.branches()).toEqual(['agent-tasks/a'])
})

it('says that uncommitted work of the checkout is not in it', async () => {
  const repo = checkout()
  repo.write('file', 'changed\n')
  const { output } = await runScript(repo, 'cat file')
  expect(output.final_message).toBe('one')
  expect(output.worktree.note).toBe(`uncommitted work in ${repo.folder} was not in it`)
  expect(readFileSync(join(repo.folder, 'file'), 'utf8')).toBe('changed\n')
})

it('runs at the place of its working directory', async () => {
  const repo = checkout()
  const folder = join(repo.folder, 'packages/a')
  const present = vi.spyOn(process, 'cwd').mockReturnValue(repo.folder)
  onTestFinished(() => present.mockRestore())
  for (const cwd of [folder, 'packages/a']) {
    const { output } = await runScript({ folder: cwd }, 'cat file')
    expect(output.final_message).toBe('a')
  }
})

it('starts at HEAD of a linked worktree, and shares its repository', async () => {
  const repo = checkout()
  const linked = join(repo.state, '../linked')
  repo.git('worktree', 'add', '-q', '-b', 'side', linked)
  gitIn(linked, 'commit', '-q', '--allow-empty', '-m', 'side')
  const { output } = await runScript({ folder: linked }, 'git log -1 --format=%s')
  expect(output.final_message).toBe('side')
  expect(repo.git('worktree', 'list').split('\n')).toHaveLength(2)
})

it('a failed program keeps its work, and its error says where', async () => {
  const repo = checkout()
  const context = createRunContext()
  const error = await failure(runScript(repo, 'echo two > file; echo bad >&2; exit 3', { context }))
  const [path] = repo.worktrees()
  expect(error.message).toContain('exited with code 3')
  expect(error.message).toContain(`Its work is kept in ${path} on branch agent-tasks/a (commits: 0, files: 1).`)
  expect(context.output()).toContain(`Its work is kept in ${path}`)
  expect(error.code).toBe('PROCESS_FAILED')
})

it('a failed program that has changed nothing leaves nothing', async () => {
  const repo = checkout()
  const error = await failure(runScript(repo, 'exit 3'))
  expect(error.message).not.toContain('kept')
  expect(repo.worktrees()).toEqual([])
  expect(repo.branches()).toEqual([])
})

it('an aborted program leaves nothing but its work', async () => {
  const repo = checkout()
  const context = createRunContext()
  const ended = failure(runScript(repo, 'echo two > new; echo ready; sleep 60 & sleep 60', { context }))
  await context.printed('ready')
  context.controller.abort()
  const error = await ended
  expect(error.name).toBe('AbortError')
  expect(error.message).toContain('files: 1')
})

it('makes nothing when it is aborted before', async () => {
  const repo = checkout()
  const context = createRunContext()
  context.controller.abort(new Error('over'))
  expect((await failure(runScript(repo, 'true', { context }))).message).toBe('over')
  expect(repo.worktrees()).toEqual([])
  expect(repo.branches()).toEqual([])
})

it('a program that does not start leaves no worktree', async () => {
  const repo = checkout()
  const error = await failure(runScript(repo, 'true', { command: 'no-such-program-anywhere' }))
  expect(error.code).toBe('PROCESS_NOT_STARTED')
  expect(repo.worktrees()).toEqual([])
})

it('waits for the end of the process group before it looks at the files', async () => {
  const repo = checkout()
  // A process of the group that writes as long as it lives, and holds no output open.
  const { output } = await runScript(repo, '(while :; do echo x > "f$(date +%N)"; done) >/dev/null 2>&1 & sleep 0.1')
  const { path, files } = output.worktree
  expect(gitIn(path!, 'status', '--porcelain').split('\n')).toHaveLength(files)
})

it.each([0, 3])('U4: is kept while a process that its program has detached runs on (exit code %i)', async (code) => {
  const repo = checkout()
  const scriptOf = (pidFile: string): string =>
    `setsid sh -c 'echo $$ > ${pidFile}; exec sleep 60' >/dev/null 2>&1 & while [ ! -s ${pidFile} ]; do sleep 0.01; done; exit ${code}`
  const left = join(repo.state, 'left')
  await runScript(repo, scriptOf(left)).catch(() => undefined)
  const pid = Number(readFileSync(left, 'utf8'))
  onTestFinished(() => void process.kill(pid, 'SIGKILL'))
  expect(repo.worktrees()).toHaveLength(1)
  expect(existsSync(repo.worktrees()[0]!)).toBe(true)
  await runScript(repo, scriptOf(join(repo.state, 'ended')), { endDetached: true, id: 'b' }).catch(() => undefined)
  expect(repo.worktrees()).toHaveLength(1)
})

it('a worktree that is removed while its task runs is gone afterwards, with its branch', async () => {
  const repo = checkout()
  const { output } = await runScript(repo, 'rm -rf "$PWD"')
  expect(output.worktree).toMatchObject({ isKept: false, note: 'its folder was removed while the task ran' })
  expect(repo.branches()).toEqual([])
  expect(existsSync(join(repo.folder, '.git/worktrees/a'))).toBe(false)
})

it('the commits of a worktree that is removed while its task runs are kept', async () => {
  const repo = checkout()
  const { output } = await runScript(
    repo,
    `git commit -q --allow-empty -m two; git -C '${repo.folder}' worktree remove -f -f "$PWD"`,
  )
  expect(output.worktree).toMatchObject({ isKept: true, commits: 1, branch: 'agent-tasks/a' })
  expect(output.worktree).not.toHaveProperty('path')
  expect(repo.branches()).toEqual(['agent-tasks/a'])
})

it('a program that damages its worktree keeps it', async () => {
  const repo = checkout()
  const { output } = await runScript(repo, 'rm "$(git rev-parse --git-dir)/HEAD"')
  expect(output.worktree.isKept).toBe(true)
  expect(output.worktree.note).toMatch(/^it was kept because git failed/)
  expect(existsSync(output.worktree.path!)).toBe(true)
})

it.each([
  ['index', 'echo damaged > "$(git rev-parse --git-dir)/index"'],
  ['head', 'echo 0000000000000000000000000000000000000001 > "$(git rev-parse --git-dir)/HEAD"'],
])('a worktree that was kept because git failed is not locked, and can be removed: %s', async (id, damage) => {
  const repo = checkout()
  const { output } = await runScript(repo, damage, { id })
  expect(output.worktree.note).toMatch(/^it was kept because git failed/)
  const [kept] = leftWorktrees((await findRepository(repo.folder)).commonDir)
  expect(kept).toMatchObject({ path: output.worktree.path, usedBy: undefined })
  expect(existsSync(join(kept!.gitDir, 'locked'))).toBe(false)
  const remove = (...options: string[]) => run(['worktrees', 'remove', id, '--repository', repo.folder, ...options])
  const spared = await remove()
  expect(spared.exitCode).toBe(4)
  expect(spared.stdout).toContain(`${id}: spared, because git `)
  expect(await remove('--force')).toMatchObject({ exitCode: 0, stdout: `${id}: removed\n` })
  expect([repo.worktrees(), repo.branches()]).toEqual([[], []])
})

it('looks into the worktree, wherever its file .git leads by now', async () => {
  const repo = checkout()
  const other = join(repo.state, '../other')
  gitIn(repo.folder, 'clone', '-q', repo.folder, other)
  const { output } = await runScript(
    repo,
    `touch new; echo new > '${other}/.git/info/exclude'; echo 'gitdir: ${other}/.git' > .git`,
  )
  expect(output.worktree).toMatchObject({ isKept: true, files: 1 })
  expect(output.worktree.note).toBeUndefined()
  expect(existsSync(join(other, 'file'))).toBe(true)
})

it.each(['uncommitted work', 'a commit'])('keeps a worktree with %s in a submodule', async (what) => {
  const repo = checkout()
  const sub = checkout({ root: join(repo.state, '..'), state: repo.state }, 'library')
  repo.git('submodule', '--quiet', 'add', sub.folder, 'sub')
  repo.git('commit', '-q', '-m', 'sub')
  const empty = await runScript(repo, 'ls sub', { id: 'empty' })
  expect(empty.output).toMatchObject({ final_message: '', worktree: { isKept: false } })
  const init = 'git submodule --quiet update --init'
  const clean = await runScript(repo, `${init}; ls sub`, { id: 'clean' })
  expect(clean.output).toMatchObject({ final_message: 'file\npackages', worktree: { isKept: false } })
  const change =
    what === 'a commit'
      ? 'cd sub; git checkout -q -b mine; git commit -q --allow-empty -m mine; git checkout -q --detach HEAD~'
      : 'touch sub/new'
  const { output } = await runScript(repo, `${init}; ${change}`)
  expect(output.worktree).toMatchObject({ isKept: true, files: 1 })
})

it.each([
  ['no repository', (root: string) => mkdirSync(join(root, 'x')), 'it is in no git repository'],
  ['a missing folder', () => undefined, 'it does not exist'],
  ['a bare repository', (root: string) => void gitIn(root, 'init', '-q', '--bare', 'x'), 'the repository is bare'],
  [
    'no commit',
    (root: string, state: string) => void checkout({ root, state }, 'x', { commits: false }),
    'no commit yet',
  ],
  [
    'a branch in the way',
    (root: string, state: string) => void checkout({ root, state }, 'x').git('branch', 'agent-tasks'),
    'it has a branch named agent-tasks, so git allows no branch named agent-tasks/…',
  ],
])('refuses %s', async (_name, make, reason) => {
  const { root, state } = useState()
  make(root, state)
  const error = await failure(runScript({ folder: join(root, 'x') }, 'true'))
  expect(error.code).toBe('WORKTREE_FAILED')
  expect(error.message).toContain(reason)
  expect(error.message).toContain(JSON.stringify(join(root, 'x')))
})

it('says so when there is no git', async () => {
  const repo = checkout()
  vi.stubEnv('PATH', repo.state)
  const error = await failure(runScript(repo, 'true'))
  expect(error.message).toContain('git was not found')
})

it('runs no git of the working directory', async () => {
  const repo = checkout()
  repo.write('git', '#!/bin/sh\ntouch "$0.ran"\n')
  repo.git('update-index', '--add', '--chmod=+x', 'git')
  vi.stubEnv('PATH', `.:${process.env['PATH']}`)
  const { output } = await runScript(repo, 'true')
  expect(output.worktree.isKept).toBe(false)
  expect(existsSync(join(repo.folder, 'git.ran'))).toBe(false)
})

it('refuses a folder that is not in HEAD, or a link out of the repository', async () => {
  const repo = checkout()
  repo.write('fresh/file', 'x')
  const error = await failure(runScript({ folder: join(repo.folder, 'fresh') }, 'true'))
  expect(error).toMatchObject({
    code: 'WORKTREE_FAILED',
    message: expect.stringContaining('its last commit does not contain') as string,
  })
  rmSync(join(repo.folder, 'packages/a'), { recursive: true })
  symlinkSync('/', join(repo.folder, 'packages/a'))
  repo.git('add', '-A')
  repo.git('commit', '-q', '-m', 'link')
  rmSync(join(repo.folder, 'packages/a'))
  mkdirSync(join(repo.folder, 'packages/a'))
  const out = await failure(runScript({ folder: join(repo.folder, 'packages/a') }, 'pwd'))
  expect(out.message).toContain('its last commit does not contain')
  expect(repo.worktrees()).toEqual([])
  expect(repo.branches()).toEqual([])
})

it('is not led to another repository by the environment, nor is its program', async () => {
  const repo = checkout()
  const other = checkout({ root: join(repo.state, '..'), state: repo.state }, 'other')
  other.write('file', 'other\n')
  vi.stubEnv('GIT_DIR', join(other.folder, '.git'))
  vi.stubEnv('GIT_WORK_TREE', other.folder)
  vi.stubEnv('GIT_INDEX_FILE', join(other.folder, '.git/index'))
  const { output } = await runScript(repo, 'git rev-parse --abbrev-ref HEAD')
  expect(output.final_message).toBe('agent-tasks/a')
  expect(output.worktree).toMatchObject({ isKept: false })
})

it('names worktrees so that no two ids share one', () => {
  for (const id of ['a', 'agent-1', '0190_x', globalThis.crypto.randomUUID()]) expect(worktreeName(id)).toBe(id)
  const hostile = [
    '',
    '.',
    '..',
    '../../x',
    'a/b',
    'a.lock',
    '-rf',
    'A',
    'x'.repeat(65),
    'ä',
    'a b',
    '\n',
    '@{1}',
    'a\0b',
    '~^:?*[\\',
    'con',
  ]
  const names = hostile.map(worktreeName)
  expect(new Set(names).size).toBe(hostile.length)
  for (const [index, name] of names.entries()) if (hostile[index] !== 'con') expect(name).toMatch(hashed)
  expect(worktreeName(worktreeName('A'))).not.toBe(worktreeName('A'))
})

it.each(['../../x', 'a/b', '-rf', 'a.lock', '@{-1}', 'Ä ö\n$(touch ran)', 'x'.repeat(300)])(
  'takes the id %j',
  async (id) => {
    const repo = checkout()
    const { output } = await runScript(repo, 'touch new', { id })
    expect(output.worktree).toMatchObject({ isKept: true, files: 1 })
    expect(repo.worktrees()).toEqual([output.worktree.path])
    expect(repo.branches()).toEqual([output.worktree.branch])
  },
)

it('refuses what an earlier task with its id has left', async () => {
  const repo = checkout()
  await runScript(repo, 'touch new')
  const error = await failure(runScript(repo, 'touch newer'))
  expect(error).toMatchObject({
    code: 'WORKTREE_FAILED',
    message: expect.stringContaining('is there from an earlier task') as string,
  })
  expect(existsSync(join(repo.worktrees()[0]!, 'newer'))).toBe(false)
})

it('refuses an option that nobody knows', () => {
  const make = (options: object) => () => processRunner({ command: 'sh', ...options })
  expect(make({ isolation: 'container' })).toThrow(/options\.isolation/)
  expect(make({ isolation: 'worktree', keep: 'never' })).toThrow(/options\.keep/)
})
