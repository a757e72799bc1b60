/** Events that are posted to the page: F20. */
import { expect, it } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type RunContext } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { startPage } from './test-page.js'

const waiting = async ({ waitFor }: RunContext): Promise<string> => String(await waitFor('paid'))

const post = (body: unknown) => ({ method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })

it('F20: an event of the page is for the tasks of the host’s owner, or for one task', async () => {
  const tasks = createAgentTasks({
    owner: 'me',
    store: memoryStore(),
    subagents: { waiting: { durable: true, run: (_input: unknown, context: RunContext) => waiting(context) } },
  })
  const { call } = await startPage({ tasks })
  const [mine, other] = [tasks.launch('waiting', 'a'), tasks.launch('waiting', 'b', { owner: 'other' })]
  await tasks.manager.stored()
  expect(await call('events', post({ event: 'paid', value: 1 }))).toMatchObject({
    status: 200,
    body: { taskIds: [mine.id] },
  })
  expect(await call('events', post({ event: 'paid', value: 2, taskId: other.id }))).toMatchObject({ status: 200 })
  expect([await mine.result, await other.result]).toEqual([{ final_message: '1' }, { final_message: '2' }])
  expect(await call('events', post({ event: 'paid', taskId: 'none' }))).toMatchObject({
    status: 400,
    body: { code: 'INVALID_INPUT', field: 'taskId' },
  })
  expect(await call('events', post({ event: '' }))).toMatchObject({ status: 400, body: { field: 'event' } })
  expect(await call('events', post({ event: 'a', value: 'x'.repeat(2 * 1024 * 1024) }))).toMatchObject({ status: 413 })
  for (const path of ['events/', 'events/more', 'events/a/b']) {
    expect(await call(path, post({ event: 'a' }))).toMatchObject({ status: 404 })
  }
  await tasks.dispose()
})

it('F20: an event of the page of a manager is for the owner main', async () => {
  const manager = new AsyncTaskManager()
  const { call } = await startPage({ tasks: manager })
  manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, (_input, context) => waiting(context))
  await Promise.resolve()
  expect((await call('events', post({ event: 'paid' }))).body).toEqual({ taskIds: ['a'] })
  await manager.dispose()
})

it('F20: the handle sends to the tasks of its owner, of another owner, or to one task, and refuses other targets', async () => {
  const tasks = createAgentTasks({
    owner: 'me',
    subagents: { waiting: { durable: false, run: (_input: unknown, context: RunContext) => waiting(context) } },
  })
  const handles = ['me', 'other', 'third'].map((owner) => tasks.launch('waiting', 'g', { owner }))
  const ids = handles.map(({ id }) => id)
  await Promise.resolve()
  expect(await tasks.emit('paid')).toEqual([ids[0]])
  expect(await tasks.emit('paid', 2, { owner: 'other' })).toEqual([ids[1]])
  expect(await tasks.emit('paid', 3, { taskId: ids[2]! })).toEqual([ids[2]])
  expect(await Promise.all(handles.map(async ({ result }) => (await result).final_message))).toEqual(['null', '2', '3'])
  for (const target of [{}, { taskId: 'a', owner: 'b' }, { task: 'a' }, null, 'a']) {
    await expect(tasks.emit('paid', 1, target as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  }
  await tasks.dispose()
})
