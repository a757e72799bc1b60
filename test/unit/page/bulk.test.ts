/** Cancel and Run again for many tasks at once: what was done, and why the rest was not. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgentTasks, type AgentTasksOptions, type RunContext, type SubagentRequest } from 'agent-tasks'
import { MAX_BULK, type BulkReport } from '../../../src/page/wire.js'
import { startPage } from './test-page.js'

async function withHost(options: Partial<AgentTasksOptions> = {}) {
  const sleep = (_request: SubagentRequest, { signal }: RunContext): Promise<string> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
  const tasks = createAgentTasks({
    maxAsyncTasks: -1,
    onError: () => undefined,
    subagents: {
      writer: ({ goal }) => goal,
      sleeper: sleep,
      parent: (request, context) => {
        context.launch({ id: 'child', subagentName: 'sleeper', goalPrompt: 'x' })
        return sleep(request, context)
      },
    },
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  const page = await startPage({ tasks })
  const { manager } = tasks
  const written = async (id: string): Promise<void> => {
    tasks.launch('writer', `letter ${id}`, { id })
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
  }
  const bulk = async (body: unknown): Promise<BulkReport> =>
    (await page.post('bulk', body)).body as unknown as BulkReport
  return { tasks, manager, written, bulk, ...page }
}

const keysOf = (...ids: string[]): string[] => ids.map((id) => `async:${id}`)

describe('cancelling many', () => {
  it('cancels those that have not ended, with the reason, and says why the others were not', async () => {
    const { tasks, manager, written, bulk } = await withHost()
    await written('old')
    await written('older')
    for (const id of ['a', 'b', 'stopped']) tasks.launch('sleeper', 'x', { id })
    manager.cancelTask('stopped', { reason: 'morning' })
    const report = await bulk({
      action: 'cancel',
      keys: keysOf('a', 'old', 'b', 'older', 'stopped', 'none', 'a'),
      reason: 'night',
    })
    expect(report).toEqual({
      done: 2,
      refused: [
        {
          error: 'The task has ended: there is nothing to cancel.',
          code: 'TASK_ENDED',
          count: 3,
          keys: keysOf('old', 'older', 'stopped'),
        },
        {
          error: 'The page no longer has this task. It keeps only the latest tasks.',
          code: 'NOT_FOUND',
          count: 1,
          keys: keysOf('none'),
        },
      ],
    })
    for (const id of ['a', 'b']) {
      expect(manager.getTask(id)).toMatchObject({ status: 'cancelled', cancelReason: 'night' })
    }
    expect(manager.getTask('stopped')).toMatchObject({ cancelReason: 'morning' })
  })

  it('counts a task whose parent it has cancelled', async () => {
    const { tasks, manager, bulk } = await withHost()
    tasks.launch('parent', 'x', { id: 'parent' })
    await expect.poll(() => manager.getTask('child')?.status).toBe('running')
    expect(await bulk({ action: 'cancel', keys: keysOf('parent', 'child') })).toEqual({ done: 2, refused: [] })
  })
})

describe('running many again', () => {
  it('starts them in their order, as far as there are slots', async () => {
    const { tasks, manager, written, bulk } = await withHost({ maxAsyncTasks: 3 })
    for (const id of ['a', 'b', 'c']) await written(id)
    tasks.launch('sleeper', 'x', { id: 's' })
    const before = manager.getAllTasks().length
    const { done, refused } = await bulk({ action: 'run-again', keys: keysOf('c', 'a', 'b', 's') })
    const made = manager.getAllTasks().slice(before)
    expect(made.slice(0, 2).map(({ goalPrompt }) => goalPrompt)).toEqual(['letter c', 'letter a'])
    expect(done).toBe(made.length)
    expect(done + refused.reduce((sum, { count }) => sum + count, 0)).toBe(4)
  })

  it('groups what was refused for the same reason, and names ten of it', async () => {
    const { manager, bulk } = await withHost()
    const ids = Array.from({ length: 12 }, (_, at) => `r${at}`)
    for (const id of ids) manager.registerTask({ id, subagentName: 'elsewhere', goalPrompt: 'x' })
    const { done, refused } = await bulk({ action: 'run-again', keys: keysOf(...ids) })
    expect([done, refused.length]).toEqual([0, 1])
    expect(refused[0]).toMatchObject({ code: 'NOT_REPEATABLE', count: 12, keys: keysOf(...ids.slice(0, 10)) })
  })

  it('goes on after an error of the host, which is reported', async () => {
    const onError = vi.fn()
    const { tasks, manager, written } = await withHost()
    await written('a')
    await written('b')
    const page = await startPage({ tasks, onError })
    const continuing = vi.spyOn(manager, 'launch').mockImplementationOnce(() => {
      throw new Error('broken')
    })
    const { body } = await page.post('bulk', { action: 'run-again', keys: keysOf('a', 'b') })
    expect(body).toMatchObject({ done: 1, refused: [{ code: 'INTERNAL', count: 1, keys: keysOf('a') }] })
    expect(onError).toHaveBeenCalledOnce()
    continuing.mockRestore()
  })
})

it.each([
  [{}, 'action'],
  [{ action: 'answer', keys: ['a'] }, 'action'],
  [{ action: 'cancel', keys: [] }, 'keys'],
  [{ action: 'cancel', keys: [1] }, 'keys.0'],
  [{ action: 'cancel', keys: Array.from({ length: MAX_BULK + 1 }, (_, at) => `async:${at}`) }, 'keys'],
  [{ action: 'run-again', keys: ['async:a'], reason: 'x' }, 'reason'],
  [{ action: 'cancel', keys: ['async:a'], reason: 'x'.repeat(1001) }, 'reason'],
])('a request as %.60j is refused, and changes nothing', async (body, field) => {
  const { tasks, manager, post } = await withHost()
  tasks.launch('sleeper', 'x', { id: 'a' })
  expect(await post('bulk', body)).toMatchObject({ status: 400, body: { field } })
  expect(manager.getTask('a')?.status).toBe('running')
  expect((await post('bulk/more', body)).status).toBe(404)
})
