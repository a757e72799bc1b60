/** A scripted session: two coding agents change the same file of one repository at the same time, each in a worktree of its own. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentTasks, processRunner } from 'agent-tasks'

const root = mkdtempSync(join(tmpdir(), 'worktrees-'))
process.env['XDG_STATE_HOME'] = join(root, 'state')
const identity = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' }
const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', env: { ...process.env, ...identity } }).trim()
git('init', '-q')
writeFileSync(join(root, '.gitignore'), 'state\n')
writeFileSync(join(root, 'greeting.txt'), 'hello\n')
git('add', '.')
git('commit', '-q', '-m', 'start')

const inWorktree = (script: string) =>
  processRunner({
    command: 'sh',
    args: ['-c', script, 'sh', '{goal}'],
    cwd: root,
    env: identity,
    isolation: 'worktree',
  })
const tasks = createAgentTasks({
  subagents: {
    coder: inWorktree('echo "$1" > greeting.txt && git commit -qam "Say $1" && echo "The greeting is $1."'),
    reviewer: inWorktree('echo "The greeting is $(cat greeting.txt)."'),
  },
})
const { task, wait_for_async_tasks: wait } = tasks.tools

for (const greeting of ['welcome', 'good morning']) {
  const launched = await task.execute({ subagent_name: 'coder', goal_prompt: greeting, async: true })
  say('the agent reads', launched.llmContent)
}
const ended = await wait.execute({})
say('the agent reads', ended.llmContent)
assert.match(ended.llmContent, /agent-tasks\//)

const branches = git('for-each-ref', '--format=%(refname:short)', 'refs/heads/agent-tasks/').split('\n')
const greetings = branches.map((branch) => git('show', `${branch}:greeting.txt`)).sort()
say('the branches have', greetings.join('\n'))
assert.deepEqual(greetings, ['good morning', 'welcome'])
assert.equal(readFileSync(join(root, 'greeting.txt'), 'utf8'), 'hello\n')

// It changes nothing, so nothing of it is left.
const review = await task.execute({ subagent_name: 'reviewer', goal_prompt: 'review it' })
say('the agent reads', review.llmContent)
assert.match(review.llmContent, /The greeting is hello/)
assert.equal(git('worktree', 'list').split('\n').length, 3)

await tasks.dispose()
rmSync(root, { recursive: true })

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
