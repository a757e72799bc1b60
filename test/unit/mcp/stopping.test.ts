/** What an MCP task says about a call that was cancelled while its program is being stopped. */
import { expect, it } from 'vitest'
import { until, type TreeProgram } from '../../support/lifelines.js'
import { stagePrograms } from '../../support/program-stage.js'
import { overStdio } from './clients.js'

const stage = stagePrograms()
const stubborn: TreeProgram = { name: 'leader', ignoresSigterm: true }

it('F22: the statusMessage of a cancelled call says that its program is stopping, until it has ended', async () => {
  const program = { command: process.execPath, args: stage.argumentsOf(stubborn) }
  const { clock, ask, initialize } = overStdio({ subagents: [{ name: 'build', description: 'd', ...program }] })
  await initialize()
  const call = { name: 'task', arguments: { subagent_name: 'build', goal_prompt: 'g' }, task: { ttl: 60_000 } }
  const { task } = (await ask(1, 'tools/call', call)) as never as { task: { taskId: string } }
  const leader = await stage.program('leader')
  let lastId = 1
  const state = async (method: string) => (await ask(++lastId, method, { taskId: task.taskId })) as object
  const cancelled = { status: 'cancelled', statusMessage: 'The task was cancelled.' }
  const stopping = {
    ...cancelled,
    statusMessage: `It is stopping: its program may take up to 5 s to end. ${cancelled.statusMessage}`,
  }
  expect(await state('tasks/cancel')).toMatchObject(stopping)
  await leader.heard('SIGTERM')
  expect(await state('tasks/get')).toMatchObject(stopping)
  clock.advance(4000)
  await leader.gone
  let last: object = {}
  await until(() => {
    void state('tasks/get').then((seen) => (last = seen))
    return !JSON.stringify(last).includes('stopping') && 'statusMessage' in last
  })
  expect(last).toMatchObject(cancelled)
})
