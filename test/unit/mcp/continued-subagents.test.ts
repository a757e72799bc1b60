/** Configured subagents whose tasks are continued with `send_to_task`: U2. The programs are real. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { BOB, setUpApp } from './wire.js'

const program = fileURLToPath(new URL('../../support/programs/session-program.mjs', import.meta.url))
const args = [program, 'codex', 'exec', '--json']
const session = {
  from: 'jsonl:thread.started/thread_id',
  resume: [...args, 'resume', '{session}', '--', '{message}'],
  result: 'jsonl:item.completed/item.text',
}

it('U2: a program of the configuration goes on where it was called, for its client alone', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-continued-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const coder = { name: 'coder', description: 'd', command: process.execPath, cwdPerCall: true, session }
  const { app, call, manager } = setUpApp({}, { subagents: [{ ...coder, args: [...args, '--', '{goal}'] }] })
  onTestFinished(() => app.close())
  const use = async (name: string, input: object, caller?: typeof BOB) => {
    const { result } = await call(name, input, {}, caller)
    return result as { readonly isError?: boolean; readonly structuredContent: { readonly task_id: string } }
  }
  const first = await use('task', { subagent_name: 'coder', goal_prompt: 'one', async: true, cwd: folder })
  const id = first.structuredContent.task_id
  await manager.waitFor([id])
  expect(manager.getTask(id)).toMatchObject({ output: { final_message: 'one' }, session: { cwd: folder } })
  expect((await use('send_to_task', { task_id: id, message: 'two' }, BOB)).isError).toBe(true)
  const next = (await use('send_to_task', { task_id: id, message: 'two' })).structuredContent.task_id
  await manager.waitFor([next])
  expect(manager.getTask(next)).toMatchObject({ owner: 'alice', continues: id, output: { final_message: 'one | two' } })
  expect(manager.getAllTasks()).toHaveLength(2)
})

it('U2: a session of a configuration is checked, and not for workers', () => {
  const problem = (more: object) =>
    agentConfigSchema.safeParse({ subagents: [{ name: 'a', description: 'd', command: 'a', ...more }] }).error
      ?.issues[0]
  expect(problem({ session })).toBeUndefined()
  expect(problem({ session: { ...session, resume: ['{message}'] } })?.path).toEqual([
    'subagents',
    0,
    'session',
    'resume',
  ])
  expect(problem({ session: { ...session, from: 'session_id' } })?.path).toEqual(['subagents', 0, 'session', 'from'])
  expect(problem({ session, runsOn: 'workers' })).toMatchObject({
    path: ['subagents', 0, 'runsOn'],
    message: 'server, because session is set',
  })
})
