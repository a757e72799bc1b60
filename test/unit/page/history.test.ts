import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createAgentTasks, functionRunner } from 'agent-tasks'
import { InstanceManager, instanceTool, localInstance, TaskManager } from 'agent-tasks/server'
import { memoryStore } from 'agent-tasks/store'
import type { PageHistory } from '../../../src/page/wire.js'
import { startPage } from './test-page.js'

const runner = functionRunner(({ goal }) =>
  goal.startsWith('fail')
    ? Promise.reject(new Error(`cannot ${goal}`))
    : Promise.resolve({ final_message: `result of ${goal}` }),
)

/** A host whose history has more tasks than its memory. */
async function withHistory(count = 60) {
  const tasks = createAgentTasks({ store: memoryStore(), subagents: { agent: runner }, maxAsyncTasks: 5 })
  onTestFinished(() => tasks.dispose())
  const { manager } = tasks
  for (let at = 0; at < count; at += 1) {
    const goalPrompt = at === 3 ? 'fail at login' : `goal ${at}`
    const { id } = manager.launch({ id: `t${String(at).padStart(3, '0')}`, subagentName: 'agent', goalPrompt }, runner)
    await manager.waitFor([id])
    manager.markNotified(id)
  }
  const page = await startPage({ tasks })
  const list = async (query = ''): Promise<PageHistory> =>
    (await page.get(`history${query}`)).body as unknown as PageHistory
  return { tasks, manager, list, ...page }
}

const idsOf = ({ tasks }: PageHistory): string[] => tasks.map(({ id }) => id)

describe('the history on the page', () => {
  it('has every task that has ended, page by page', async () => {
    const { list, manager } = await withHistory()
    expect(manager.getAllTasks().length).toBeLessThan(30)
    const first = await list()
    const second = await list(`?before=${encodeURIComponent(first.next ?? '')}`)
    const ids = [...idsOf(first), ...idsOf(second)]
    expect([new Set(ids).size, ids.length, second.next]).toEqual([60, 60, undefined])
    expect(first.tasks[0]).toMatchObject({
      kind: 'async',
      group: 'main',
      subagent: 'agent',
      state: 'completed',
      canRunAgain: true,
    })
  })

  it('finds tasks by words and by their end', async () => {
    const { list } = await withHistory(20)
    expect((await list('?text=LOG')).tasks).toMatchObject([
      { id: 't003', state: 'failed', error: 'cannot fail at login' },
    ])
    expect(idsOf(await list('?status=failed'))).toEqual(['t003'])
    expect((await list('?text=result+12')).tasks).toMatchObject([{ id: 't012', result: 'result of goal 12' }])
    expect(idsOf(await list('?status=&text='))).toHaveLength(20)
    expect(idsOf(await list('?kind=command'))).toEqual([])
  })

  it('finds tasks by their owner and their subagent, also those that only the store has', async () => {
    const { list, manager } = await withHistory(5)
    for (const [id, owner] of [
      ['x1', 'ada'],
      ['x2', 'bob'],
    ] as const) {
      manager.launch({ id, subagentName: 'other', goalPrompt: 'goal', owner }, runner)
      await manager.waitFor([id])
      manager.markNotified(id)
    }
    let many = 7
    for (; many < 60 && manager.getTask('x2') !== undefined; many += 1) {
      const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'later' }, runner)
      await manager.waitFor([id])
      manager.markNotified(id)
    }
    expect(idsOf(await list('?owner=ada'))).toEqual(['x1'])
    expect(idsOf(await list('?subagent=other'))).toEqual(['x2', 'x1'])
    expect(idsOf(await list('?subagent=other&owner=bob&text=goal&status=completed'))).toEqual(['x2'])
    expect(idsOf(await list('?owner=nobody'))).toEqual([])
    expect(idsOf(await list('?owner=&subagent=&instance='))).toHaveLength(Math.min(many, 50))
  })

  it('shows large results and goals in part', async () => {
    const tasks = createAgentTasks({ store: memoryStore(), subagents: { agent: runner } })
    onTestFinished(() => tasks.dispose())
    await tasks.launch('agent', 'x'.repeat(50_000)).result
    const { get } = await startPage({ tasks })
    const {
      tasks: [task],
    } = (await get('history')).body as unknown as PageHistory
    expect(task?.title.length).toBeLessThanOrEqual(200)
    expect(task?.result?.length).toBeLessThanOrEqual(20_000)
  })

  it.each([
    ['?before=x', 'query.before'],
    ['?status=done', 'query.status'],
    ['?kind=all', 'query.kind'],
    ['?limit=5', 'query.limit'],
    [`?owner=${'x'.repeat(1001)}`, 'query.owner'],
    ['?instance=calc', 'query.instance: got "calc", expected no value'],
    ['?kind=command&subagent=agent', 'query.subagent: got "agent", expected no value'],
    [`?text=${'x'.repeat(1001)}`, 'query.text'],
    ['?text=a&text=b', '"text" occurs more than once'],
  ])('refuses %.40s in words', async (query, message) => {
    const { get } = await withHistory(1)
    expect(await get(`history${query}`)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(message) as string, code: 'INVALID_INPUT' },
    })
  })

  it('needs the token', async () => {
    const { base } = await withHistory(1)
    expect((await fetch(`${base}/api/history`)).status).toBe(401)
  })
})

describe('running a past task again', () => {
  it('starts a new task with the same goal', async () => {
    const { post, manager } = await withHistory(20)
    expect(manager.getTask('t001')).toBeUndefined()
    const { status, body } = await post('history/async:t001/run-again')
    expect(status).toBe(200)
    const id = String(body['key']).replace('async:', '')
    await manager.waitFor([id])
    expect(manager.getTask(id)).toMatchObject({ goalPrompt: 'goal 1', owner: 'main', status: 'completed' })
    expect(id).not.toBe('t001')
  })

  it('is also that of a task which memory still has', async () => {
    const { post, manager } = await withHistory(20)
    expect(manager.getTask('t019')).toBeDefined()
    expect((await post('history/async:t019/run-again')).status).toBe(200)
  })

  it('is that of a task which an earlier process has left in its store, too', async () => {
    const store = memoryStore()
    const first = createAgentTasks({ store, subagents: { agent: runner } })
    const { id } = first.launch('agent', 'again and again')
    await first.manager.waitFor([id])
    await first.manager.stored()
    const tasks = createAgentTasks({ store: store.copy(), subagents: { agent: runner } })
    onTestFinished(async () => {
      await first.dispose()
      await tasks.dispose()
    })
    await tasks.recovered
    const page = await startPage({ tasks })
    const { tasks: listed } = (await page.get('history')).body as unknown as PageHistory
    expect(listed).toMatchObject([{ id, canRunAgain: true }])
    const answer = await page.post(`history/${encodeURIComponent(`async:${id}`)}/run-again`, {})
    expect(answer.status).toBe(200)
    expect(tasks.manager.getAllTasks().map(({ goalPrompt }) => goalPrompt)).toEqual([
      'again and again',
      'again and again',
    ])
  })

  it('is refused when its subagent or the task is gone', async () => {
    const { manager, post } = await withHistory(1)
    manager.launch({ id: 'other', subagentName: 'unknown', goalPrompt: 'x' }, runner)
    await manager.waitFor(['other'])
    manager.markNotified('other')
    for (let at = 0; at < 20; at += 1) {
      const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'y' }, runner)
      await manager.waitFor([id])
      manager.markNotified(id)
    }
    expect(await post('history/async:other/run-again')).toMatchObject({
      status: 409,
      body: { code: 'NOT_REPEATABLE', error: expect.stringContaining('no subagent "unknown"') as string },
    })
    for (const key of ['async:none', 'command:none', 'x', '']) {
      const { status } = await post(`history/${key}/run-again`)
      expect([key, status]).toEqual([key, 409])
    }
    expect((await post('history/async:other/run-again', { x: 1 })).status).toBe(400)
    expect((await post('history/async:other/cancel')).status).toBe(404)
  })

  it('submits the commands of a command task again', async () => {
    const instances = new InstanceManager()
    instances.connect(
      localInstance({
        id: 'calc',
        tools: [
          instanceTool({ name: 'add', inputSchema: z.object({ a: z.number() }), execute: ({ a }) => ({ sum: a + 1 }) }),
        ],
      }),
    )
    const taskManager = new TaskManager({ instances, store: memoryStore(), maxRetained: 0 })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { get, post } = await startPage({ taskManager })
    const run = async (): Promise<void> => {
      await new Promise((resolve) => taskManager.on('complete', resolve))
    }
    const first = run()
    taskManager.submitTask({ task_name: 'sums', commands: [{ tool_name: 'add', args: { a: 41 } }] })
    await first
    await expect
      .poll(async () => ((await get('history')).body as unknown as PageHistory).tasks.map(({ title }) => title))
      .toEqual(['sums'])
    const {
      tasks: [task],
    } = (await get('history')).body as unknown as PageHistory
    expect(task).toMatchObject({ kind: 'command', group: 'calc', state: 'completed', canRunAgain: true })
    expect(task?.result).toContain('42')
    const again = run()
    expect((await post(`history/${task?.key ?? ''}/run-again`)).status).toBe(200)
    await again
    await expect
      .poll(async () => ((await get('history?text=sums&instance=calc')).body as unknown as PageHistory).tasks.length)
      .toBe(2)
    expect((await get('history?instance=other')).body).toEqual({ tasks: [] })
  })
})
