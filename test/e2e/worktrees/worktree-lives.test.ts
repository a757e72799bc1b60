/** Worktrees of tasks that are run again, that run at the same time, and whose hosts die. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import {
  AsyncTaskManager,
  createAgentTasks,
  type ProcessRunnerOptions,
  type RunnerDefinition,
} from '../../../src/index.js'
import { systemClock } from '../../../src/system/clock.js'
import { configuredSubagents } from '../../../src/mcp/configured-subagents.js'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { leftWorktrees } from '../../../src/runners/worktrees/left-worktree.js'
import { findRepository } from '../../../src/runners/worktrees/repository.js'
import { lockRepository } from '../../../src/runners/worktrees/repository-lock.js'
import { runInWorktree } from '../../../src/runners/worktrees/run-in-worktree.js'
import { parseProcessOptions } from '../../../src/runners/process-options.js'
import { sqliteStore } from '../../../src/store/index.js'
import { createRunContext, runInput } from '../../support/run-context.js'
import { run } from '../../unit/cli/command-line.js'
import { checkout, failure, gitIn, runScript, shell, type Checkout } from '../../support/checkouts.js'

const parts = (folder: string, options: Partial<ProcessRunnerOptions> = {}) => ({
  settings: parseProcessOptions({ command: 'sh', cwd: folder, isolation: 'worktree', ...options }),
  input: { ...runInput(), id: 'a' },
  context: createRunContext(),
})
const again = { also: { attempt: 2 } }
const left = async (repo: Checkout) => leftWorktrees((await findRepository(repo.folder)).commonDir)

function manage(options: ConstructorParameters<typeof AsyncTaskManager>[0] = {}): AsyncTaskManager {
  const manager = new AsyncTaskManager(options)
  onTestFinished(() => manager.dispose())
  return manager
}

async function settle(manager: AsyncTaskManager, definition: RunnerDefinition) {
  manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, definition)
  return (await manager.waitFor(['a'])).settled[0]
}

it('twenty tasks at once have twenty worktrees', async () => {
  const repo = checkout()
  const ids = Array.from({ length: 20 }, (_, index) => `task-${index}`)
  const all = await Promise.all(ids.map((id) => runScript(repo, 'pwd > new', { id })))
  expect(all.map(({ output }) => output.worktree.isKept)).toEqual(ids.map(() => true))
  expect(repo.branches().sort()).toEqual(ids.map((id) => `agent-tasks/${id}`).sort())
  expect(repo.git('worktree', 'list').split('\n')).toHaveLength(21)
  expect(readdirSync(join(repo.folder, '.git')).filter((name) => name.startsWith('agent-tasks'))).toEqual([])
})

it('a retry uses the worktree of the attempt before it, and counts from its start', async () => {
  const repo = checkout()
  const base = repo.git('rev-parse', 'HEAD')
  const script =
    'test -e new && { git commit -q --allow-empty -m two; cat new; exit 0; }; git commit -q --allow-empty -m one; echo 1 > new; exit 3'
  const retry = { attempts: 2, on: ['exit-code' as const], backoff: { initialMs: 1 } }
  const ended = await settle(manage(), { run: shell(repo.folder, script), retry })
  expect(ended).toMatchObject({
    status: 'completed',
    output: { final_message: '1', worktree: { isKept: true, commits: 2, files: 1, base } },
  })
  expect(repo.worktrees()).toHaveLength(1)
})

it('a retry makes a worktree again on the branch of one that was removed, and counts from its first start', async () => {
  const repo = checkout()
  const base = repo.git('rev-parse', 'HEAD')
  await failure(runScript(repo, 'echo 2 > file; git commit -qam two; exit 1'))
  rmSync(repo.worktrees()[0]!, { recursive: true })
  repo.git('merge', '-q', 'agent-tasks/a')
  const { output } = await runScript(repo, 'cat file', again)
  expect(output).toMatchObject({ final_message: '2', worktree: { isKept: true, commits: 1, base } })
})

it('a retry counts from the branch of its repository when git has forgotten the worktree', async () => {
  const repo = checkout()
  const base = repo.git('rev-parse', 'HEAD')
  await failure(runScript(repo, 'echo 2 > file; git commit -qam two; exit 1'))
  repo.git('worktree', 'remove', repo.worktrees()[0]!)
  repo.git('commit', '-q', '--allow-empty', '-m', 'meanwhile')
  const { output } = await runScript(repo, 'cat file', again)
  expect(output).toMatchObject({ final_message: '2', worktree: { isKept: true, commits: 1, base } })
})

it('a worktree is looked at when every process of the group has ended', async () => {
  const repo = checkout()
  const { settings, input, context } = parts(repo.folder)
  const output = await runInWorktree(settings, input, context, ({ cwd }, noted) => {
    const { pid } = spawn('sh', ['-c', 'sleep 0.3; touch late'], { cwd, detached: true, stdio: 'ignore' })
    noted.setProgram?.({ pid: pid! })
    return Promise.resolve({})
  })
  expect(output).toMatchObject({ worktree: { isKept: true, files: 1 } })
})

it('a worktree is kept when a process of the group does not end', async () => {
  const repo = checkout()
  const clock = { ...systemClock, setTimeout: (resume: () => void) => setImmediate(resume) }
  const { settings, input, context } = parts(repo.folder, { clock })
  let group = 0
  const output = await runInWorktree(settings, input, context, ({ cwd }, noted) => {
    group = spawn('sleep', ['60'], { cwd, detached: true, stdio: 'ignore' }).pid!
    noted.setProgram?.({ pid: group })
    return Promise.resolve({})
  })
  process.kill(-group, 'SIGKILL')
  expect(output).toMatchObject({ worktree: { isKept: true, commits: 0, files: 0 } })
})

it('a retry waits for the end of an attempt that was given up', async () => {
  const repo = checkout()
  const context = createRunContext()
  const first = failure(runScript(repo, 'echo ready; sleep 0.3; echo 1 > new; exit 1', { context }))
  await context.printed('ready')
  const second = runScript(repo, 'cat new', again)
  await first
  expect((await second).output.final_message).toBe('1')
})

it('while it runs, a worktree is locked in the name of its host, and not removed', async () => {
  const repo = checkout()
  const script = `git worktree lock . 2>&1; cat "$(git rev-parse --git-dir)/locked"; git worktree remove . 2>&1`
  const { output } = await runScript(repo, `${script}; sleep 0.1`)
  expect(output.final_message).toContain(`agent-tasks {"pid":${process.pid},"start":`)
  expect(output.final_message).toContain('cannot remove a locked working tree')
  expect(output.final_message).toContain('already locked')
})

it('the lock of a process that has died is taken over, once, also when the file is damaged', async () => {
  const repo = checkout()
  const { commonDir } = await findRepository(repo.folder)
  const file = join(commonDir, 'agent-tasks.lock')
  for (const text of [
    JSON.stringify({ pid: 1, start: '1', boot: 'earlier', token: globalThis.crypto.randomUUID() }),
    '',
    '{"pid":"x"}',
  ]) {
    writeFileSync(file, text)
    let inside = 0
    await Promise.all(
      Array.from({ length: 10 }, () =>
        lockRepository(commonDir, { clock: systemClock }, async () => {
          inside += 1
          expect(inside).toBe(1)
          await new Promise((resolve) => setImmediate(resolve))
          inside -= 1
        }),
      ),
    )
    expect(readdirSync(commonDir).filter((name) => name.startsWith('agent-tasks'))).toEqual([])
  }
})

it('a lock that is held is waited for until the signal aborts, or for five minutes', async () => {
  const repo = checkout()
  const { commonDir } = await findRepository(repo.folder)
  const file = join(commonDir, 'agent-tasks.lock')
  mkdirSync(file)
  const aborted = lockRepository(commonDir, { clock: systemClock, signal: AbortSignal.timeout(50) }, () =>
    Promise.resolve(),
  )
  expect((await failure(aborted)).name).toBe('TimeoutError')
  const clock = { ...systemClock, setTimeout: (resume: () => void) => setImmediate(resume) }
  const late = await failure(lockRepository(commonDir, { clock }, () => Promise.resolve()))
  expect(late).toMatchObject({
    code: 'WORKTREE_FAILED',
    message: `${file}: process unknown has held this lock for five minutes.`,
  })
})

it('a lock is released when what it was held for fails', async () => {
  const repo = checkout()
  const { commonDir } = await findRepository(repo.folder)
  await failure(lockRepository(commonDir, { clock: systemClock }, () => Promise.reject(new Error('no'))))
  await lockRepository(commonDir, { clock: systemClock }, () => Promise.resolve())
})

/** A host of its own process, with a store, whose program has said that it is ready. */
async function startHost(repo: Checkout, script: string, options: object = {}, store = true) {
  const source = (file: string): string => JSON.stringify(new URL(`../../../src/${file}`, import.meta.url).href)
  const code = `
    const { AsyncTaskManager, processRunner } = await import(${source('index.ts')})
    const { sqliteStore } = await import(${source('store/index.ts')})
    const options = ${JSON.stringify({ command: 'sh', args: ['-c', script], cwd: repo.folder, isolation: 'worktree', ...options })}
    const manager = new AsyncTaskManager(${store ? `{ store: sqliteStore(${JSON.stringify(join(repo.state, 'tasks.db'))}) }` : ''})
    manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, processRunner(options))`
  mkdirSync(repo.state, { recursive: true })
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise((resolve) => child.once('close', resolve))
  while ((await left(repo))[0]?.notes?.program === undefined || !existsSync(join(repo.worktrees()[0]!, 'ready'))) {
    if (child.exitCode !== null) throw new Error('the host has ended')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    pid: child.pid,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const until = async (isTrue: () => Promise<boolean>): Promise<void> => {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20))
}

it('after a crash of its host a task goes on in its worktree when it is run again', async () => {
  const repo = checkout()
  const host = await startHost(repo, 'echo 1 > new; touch ready; sleep 60')
  // A live owner is spared, also by force, and another host does not use it.
  const listed = JSON.parse((await run(['worktrees', '--json', '--repository', repo.folder])).stdout) as object
  expect(listed).toMatchObject({ task: 'a', usedBy: host.pid, files: 2, commits: 0, branch: 'agent-tasks/a' })
  const spared = await run(['worktrees', 'remove', 'a', '--force', '--repository', repo.folder])
  expect(spared).toMatchObject({ exitCode: 4, stdout: `a: spared, because process ${host.pid} uses it\n` })
  expect((await failure(runScript(repo, 'true', again))).message).toContain(`process ${host.pid} uses`)
  await host.kill()
  const definition = { ...shell(repo.folder, 'cat new'), retry: { attempts: 2, on: ['interrupted' as const] } }
  const manager = manage({ store: sqliteStore(join(repo.state, 'tasks.db')), findRunner: () => definition })
  // The first launch had no policy, so that the task is interrupted, and may be removed.
  await until(async () => (await left(repo))[0]?.usedBy === undefined)
  expect(manager.getTask('a')?.status).toMatch(/failed|running|completed/)
  await manager.waitFor(['a'])
  const { output } = manager.getTask('a') as { output?: { worktree: object } }
  expect(output).toMatchObject({ final_message: '1', worktree: { isKept: true, files: 2 } })
})

it('a program that survives its host keeps its worktree in use, and the next host closes it', async () => {
  const repo = checkout()
  const script = 'echo 1 > new; touch ready; while [ ! -e go ]; do sleep 0.05; done; echo done'
  const host = await startHost(repo, script, { survivesHost: true })
  await host.kill()
  const [used] = await left(repo)
  expect(used?.usedBy).toBe(used?.notes?.program?.pid)
  expect((await run(['worktrees', 'remove', 'a', '--force', '--repository', repo.folder])).exitCode).toBe(4)
  const definition = shell(repo.folder, script, { survivesHost: true })
  const manager = manage({ store: sqliteStore(join(repo.state, 'tasks.db')), findRunner: () => definition })
  writeFileSync(join(used!.path, 'go'), '')
  const { settled } = await manager.waitFor(['a'])
  expect(settled[0]).toMatchObject({
    status: 'completed',
    output: { final_message: 'done', worktree: { isKept: true, files: 3 } },
  })
  expect((await left(repo))[0]?.usedBy).toBeUndefined()
})

it('a program that outlives a killed host without a store is spared until it ends', async () => {
  const repo = checkout()
  // The watchdog of the host asks the program to stop, and kills it after its grace period.
  const script = 'trap "" TERM; touch ready; sleep 60 & sleep 60'
  const host = await startHost(repo, script, { graceMs: 60_000 }, false)
  const pid = (await left(repo))[0]!.notes!.program!.pid
  onTestFinished(() => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  })
  await host.kill()
  expect((await left(repo))[0]?.usedBy).toBe(pid)
  process.kill(pid, 'SIGKILL')
  // The rest of its group runs.
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect((await left(repo))[0]?.usedBy).toBe(pid)
  process.kill(-pid, 'SIGKILL')
  await until(async () => (await left(repo))[0]?.usedBy === undefined)
})

it('a worktree that was never completed is made anew by a retry, and removed by the command', async () => {
  const repo = checkout()
  const { output } = await runScript(repo, 'touch new')
  const { path } = output.worktree
  const [found] = await left(repo)
  const dead = JSON.stringify({ pid: 999999, start: '1', boot: 'earlier' })
  rmSync(join(found!.gitDir, 'agent-tasks.json'))
  expect(await left(repo)).toEqual([])
  repo.git('worktree', 'lock', '--reason', `agent-tasks ${dead}`, path!)
  expect(await left(repo)).toMatchObject([{ notes: undefined, usedBy: undefined }])
  expect((await runScript(repo, 'ls', again)).output).toMatchObject({
    final_message: 'file\npackages',
    worktree: { isKept: false },
  })
})

it('damaged notes count as changes', async () => {
  const repo = checkout()
  await runScript(repo, 'true', { keep: 'always' })
  writeFileSync(join((await left(repo))[0]!.gitDir, 'agent-tasks.json'), '')
  const { output } = await runScript(repo, 'true', again)
  expect(output.worktree).toMatchObject({ isKept: true, base: 'unknown' })
})

it('lists what was left in a relative folder, and removes what has no changes', async () => {
  const repo = checkout()
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(repo.folder)
  onTestFinished(() => cwd.mockRestore())
  const at = ['--repository', '.']
  expect(await run(['worktrees', ...at])).toMatchObject({
    exitCode: 0,
    stdout: '',
    stderr: 'There are no worktrees of tasks.\n',
  })
  await runScript(repo, 'true', { id: 'clean', keep: 'always' })
  await runScript(repo, 'echo 2 > file; git commit -qam two', { id: 'merged' })
  await runScript(repo, 'touch new', { id: 'A b' })
  await runScript(repo, 'git commit -q --allow-empty -m two', { id: 'committed' })
  repo.git('merge', '-q', 'agent-tasks/merged')
  const listed = await run(['worktrees', 'list', ...at])
  expect(listed.stdout).toMatch(/^TASK +USED BY +COMMITS +FILES +AGE +FOLDER\n/)
  expect(listed.stdout).toMatch(/\nA b +nobody +0 +1 /)
  expect(listed.stdout).toMatch(/\ncommitted +nobody +1 +0 /)
  expect(listed.stdout).toMatch(/\nmerged +nobody +0 +0 /)
  const removed = await run(['worktrees', 'remove', ...at])
  expect(removed.exitCode).toBe(0)
  expect(removed.stdout.split('\n').sort()).toEqual([
    '',
    'A b: spared, because it has changes (commits: 0, files: 1); --force removes them',
    'clean: removed',
    'committed: spared, because it has changes (commits: 1, files: 0); --force removes them',
    'merged: removed',
  ])
  expect(repo.worktrees()).toHaveLength(2)
  expect(repo.branches()).toHaveLength(2)
  expect((await run(['worktrees', 'remove', 'committed', ...at])).exitCode).toBe(4)
  expect(await run(['worktrees', 'remove', 'nobody', ...at])).toMatchObject({ exitCode: 2 })
  const forced = await run(['worktrees', 'remove', 'A b', '--force', '--json', ...at])
  expect(forced.exitCode).toBe(0)
  expect(JSON.parse(forced.stdout)).toMatchObject({ task: 'A b', isRemoved: true, files: 1 })
  // From inside of one, too.
  const [path] = repo.worktrees()
  expect(await run(['worktrees', 'remove', 'committed', '--force', '--repository', path!])).toMatchObject({
    exitCode: 0,
    stdout: 'committed: removed\n',
  })
  expect([repo.worktrees(), repo.branches()]).toEqual([[], []])
})

it('leaves other worktrees alone, and lists those whose folder was removed', async () => {
  const repo = checkout()
  const at = ['--repository', repo.folder]
  repo.git('worktree', 'add', '-q', '--lock', '-b', 'agent-tasks/mine', join(repo.state, 'mine'))
  await runScript(repo, 'touch new')
  rmSync(repo.worktrees()[0]!, { recursive: true })
  expect(JSON.parse((await run(['worktrees', '--json', ...at])).stdout)).toMatchObject({
    task: 'a',
    commits: 0,
    files: 0,
  })
  expect((await run(['worktrees', 'remove', ...at])).stdout).toBe('a: removed\n')
  expect(repo.branches()).toEqual(['agent-tasks/mine'])
  expect(gitIn(join(repo.state, 'mine'), 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('agent-tasks/mine')
})

it('a model reads where the work of a task is', async () => {
  const repo = checkout()
  const tasks = createAgentTasks({ subagents: { fix: shell(repo.folder, 'touch new') } })
  onTestFinished(() => tasks.dispose())
  const { llmContent } = await tasks.tools.task.execute({ subagent_name: 'fix', goal_prompt: 'fix it' })
  expect(llmContent).toContain('agent-tasks/')
  expect(llmContent).toContain(repo.worktrees()[0])
})

it('a configured subagent has a worktree, which is kept as the configuration says', async () => {
  const repo = checkout()
  const subagent = {
    name: 'fix',
    description: 'd',
    command: 'sh',
    args: ['-c', 'true'],
    isolation: 'worktree',
    keep: 'always',
  }
  const config = agentConfigSchema.parse({ subagents: [subagent] })
  const folders = { folder: repo.folder, projectFolder: repo.folder }
  const { run: runSubagent } = configuredSubagents(config, folders, systemClock).get('fix')!
  const request = { ...runInput(), id: 'a', goal_prompt: 'goal' }
  const output = await runSubagent(request, createRunContext())
  expect(output).toMatchObject({ worktree: { isKept: true, branch: 'agent-tasks/a', commits: 0 } })
})
