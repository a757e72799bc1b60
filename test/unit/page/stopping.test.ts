/** What the page, and the commands that use it, say about a cancelled task whose program is being stopped. The program is real. */
import { expect, it } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import type { TreeProgram } from '../../support/lifelines.js'
import { GRACE_MS, stagePrograms } from '../../support/program-stage.js'
import { jsonLines, run } from '../cli/command-line.js'
import { startPage } from './test-page.js'

const stage = stagePrograms()
const stubborn: TreeProgram = { name: 'leader', ignoresSigterm: true }

async function setUp() {
  const manager = new AsyncTaskManager({ clock: stage.clock })
  const launched = manager.launch({ subagentName: 'node', goalPrompt: 'goal' }, stage.runnerOf(stubborn))
  const leader = await stage.program('leader')
  const page = await startPage({ tasks: manager })
  const reader = await page.read()
  const key = `async:${launched.id}`
  const ask = (...args: string[]) => run(['tasks', ...args, '--page', page.page.url])
  const end = async () => {
    const disposal = manager.dispose()
    stage.clock.advance(GRACE_MS)
    await disposal
    await leader.gone
  }
  return { ...page, manager, id: launched.id, key, leader, reader, ask, end }
}

it('F22: the page shows that a cancelled task is stopping, until its program has ended', async () => {
  const { key, post, get, leader, reader, end } = await setUp()
  expect(await post(`tasks/${key}/cancel`)).toMatchObject({ status: 200, body: { stopsWithinMs: 3000 } })
  await reader.until(({ tasks }) => tasks.get(key)?.stopsWithinMs === 3000)
  expect(reader.tasks.get(key)).toMatchObject({ state: 'cancelled' })
  await leader.heard('SIGTERM')
  stage.clock.advance(GRACE_MS)
  await leader.gone
  await reader.until(({ tasks }) => tasks.get(key)?.stopsWithinMs === undefined)
  const { events } = (await get(`tasks/${key}`)).body as { events: { event: string }[] }
  expect(events.map(({ event }) => event)).toEqual(['started', 'cancelled', 'its program has ended'])
  await end()
})

it('F22: a page that starts later shows it, too', async () => {
  const { manager, id, key, leader, end } = await setUp()
  manager.cancelTask(id)
  await leader.heard('SIGTERM')
  const reader = await (await startPage({ tasks: manager })).read()
  await reader.until(({ tasks }) => tasks.get(key)?.stopsWithinMs === 3000)
  await end()
  await reader.until(({ tasks }) => tasks.get(key)?.stopsWithinMs === undefined)
})

it('F22: `tasks cancel`, `tasks list` and `tasks show` say that a task is stopping', async () => {
  const { id, ask, leader, end } = await setUp()
  expect(await ask('cancel', id)).toMatchObject({
    exitCode: 0,
    stdout: `${id} was cancelled. Its program is being stopped, which may take up to 3 s.\n`,
  })
  await leader.heard('SIGTERM')
  expect((await ask('list')).stdout).toMatch(/ stopping +node /)
  expect((await ask('show', id)).stdout).toMatch(/Status +stopping\n/)
  expect(jsonLines((await ask('list', '--json', '--status', 'cancelled')).stdout)).toMatchObject([
    { task_id: id, status: 'cancelled', state: 'stopping', stopsWithinMs: 3000 },
  ])
  await end()
  expect((await ask('list')).stdout).toMatch(/ cancelled +node /)
})

it('F22: `tasks cancel --json` says how long the program may take', async () => {
  const { id, ask, leader, end } = await setUp()
  expect((await ask('cancel', id, '--json')).stdout).toBe(`{"task_id":"${id}","cancelled":true,"stopsWithinMs":3000}\n`)
  await leader.heard('SIGTERM')
  await end()
})
