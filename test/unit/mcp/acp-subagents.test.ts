/** Configured subagents that speak the Agent Client Protocol. The agent is a real program. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { setUpApp } from './wire.js'

const program = fileURLToPath(new URL('../../support/programs/acp-agent.mjs', import.meta.url))
const agentOf = (acp: object, script: object, more: object = {}) => ({
  name: 'coder',
  description: 'd',
  command: process.execPath,
  args: [program, JSON.stringify(script)],
  acp,
  ...more,
})

async function resultOf(subagent: Omit<ReturnType<typeof agentOf>, 'args'>) {
  const { app, call, manager } = setUpApp({}, { subagents: [subagent] })
  onTestFinished(() => app.close())
  const { result } = await call('task', { subagent_name: 'coder', goal_prompt: 'the goal', async: true })
  const { task_id: id } = (result as { readonly structuredContent: { readonly task_id: string } }).structuredContent
  await manager.waitFor([id])
  return manager.getTask(id)
}

it('runs an agent with the goal as its prompt, and its permissions', async () => {
  const asks = (kind: string) => ['permission', { toolCallId: kind, title: kind, kind }]
  const script = { acts: [['prompt'], asks('edit'), asks('execute')] }
  const task = await resultOf(agentOf({ permissions: { edit: 'allow', default: 'deny' } }, script))
  expect(task).toMatchObject({ status: 'completed', session: { id: 'session-1' } })
  const { final_message = '' } = task?.output ?? {}
  expect(JSON.parse(final_message)).toMatchObject([
    [{ type: 'text', text: 'the goal' }],
    { outcome: { outcome: 'selected', optionId: 'yes' } },
    { outcome: { outcome: 'selected', optionId: 'no' } },
  ])
})

it('starts an agent without arguments where none are configured', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-acp-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const command = join(folder, 'agent.mjs')
  writeFileSync(command, `#!${process.execPath}\nprocess.stderr.write('got ' + process.argv.length); process.exit(3)`)
  chmodSync(command, 0o700)
  const { args: _, ...agent } = agentOf({}, {}, { command })
  expect(await resultOf(agent)).toMatchObject({ status: 'failed', error: expect.stringContaining('got 2') as string })
})

it('asks by default, and names what does not go with acp', () => {
  const problem = (more: object) => agentConfigSchema.safeParse({ subagents: [agentOf({}, {}, more)] }).error?.issues[0]
  expect(problem({})).toBeUndefined()
  expect(agentConfigSchema.parse({ subagents: [agentOf({}, {})] }).subagents[0]?.acp).toEqual({ permissions: 'ask' })
  for (const more of [
    { survivesHost: true },
    { stdin: 'messages' },
    { runsOn: 'workers' },
    { output: 'json' },
    { isolation: 'worktree' },
    { asks: true },
  ]) {
    const [field = ''] = Object.keys(more)
    expect(problem(more)).toMatchObject({
      path: ['subagents', 0, field],
      message: 'no value, because acp is set',
    })
  }
  expect(problem({ acp: { permissions: 'maybe' } })?.path.slice(0, 4)).toEqual(['subagents', 0, 'acp', 'permissions'])
})
