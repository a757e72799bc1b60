import { expect, it, onTestFinished, vi } from 'vitest'
import type { TaskManagerOptions } from '../../../src/server/index.js'
import { memoryStore, type PastTask, type Store } from '../../../src/store/index.js'
import { pastCommandTask } from '../../../src/command-tasks/past-command-task.js'
import { createCommandHost } from '../../support/command-host.js'
import { waitFor } from '../../support/wait-for.js'

function hostOn(store: Store, options: Partial<TaskManagerOptions> = {}) {
  const host = createCommandHost({ store, maxRetained: 2, ...options })
  onTestFinished(() => host.dispose().then(() => undefined))
  return host
}

it('the history has each command task that has ended once, also those that are not retained any longer', async () => {
  const store = memoryStore()
  const host = hostOn(store)
  host.connect()
  const ids: string[] = []
  for (const name of ['alpha', 'beta', 'gamma', 'delta', 'epsilon']) {
    ids.push(host.submit(name))
    await host.settle()
    host.calls.at(-1)?.finish({ done: name })
    await host.settle()
    host.clock.advance(10)
  }
  expect(host.tasks.listTasks()).toHaveLength(2)
  const { tasks } = await host.tasks.history()
  expect(tasks.map(({ id }) => id)).toEqual([...ids].reverse())
  expect(tasks.at(-1)).toEqual(expect.objectContaining({ status: 'completed', instanceId: 'one' }))
  expect(tasks.at(-1)?.commands).toMatchObject([{ status: 'success' }])
  const [first, second] = [await host.tasks.history({ limit: 3 }), await host.tasks.history({ text: 'beta' })]
  expect(first.tasks).toHaveLength(3)
  const rest = await host.tasks.history({ limit: 3, ...(first.next !== undefined && { before: first.next }) })
  expect([...first.tasks, ...rest.tasks].map(({ id }) => id)).toEqual([...ids].reverse())
  expect(rest.next).toBeUndefined()
  expect(second.tasks.map(({ id }) => id)).toEqual([ids[1]])
  expect((await host.tasks.history({ instanceId: 'other' })).tasks).toEqual([])
  await expect(host.tasks.history({ owner: 'x' } as object)).rejects.toThrow('query.owner')
  // Nothing of them is left in the rows that a process reads when it starts.
  await host.dispose()
  expect(store.contents().commandTasks.length).toBeLessThanOrEqual(3)
})

it.each(['has', 'does not take'])(
  'the rows of a task stay in the store until the history has it (it %s it)',
  async (word) => {
    const memory = memoryStore()
    const adding: (() => void)[] = []
    const add = vi.fn(async (tasks: readonly PastTask[]) => {
      await new Promise<void>((resolve) => adding.push(resolve))
      if (word === 'does not take') throw new Error('no room')
      await memory.history?.add(tasks)
    })
    const history = { ...(memory.history as NonNullable<Store['history']>), add }
    const host = hostOn({ ...memory, history }, { maxRetained: 0, onError: () => undefined })
    host.connect()
    const rows = (): number[] => [memory.contents().commandTasks.length, memory.contents().commands.length]
    for (const name of ['a', 'b']) {
      host.submit(name)
      await host.settle()
      host.calls.at(-1)?.finish()
      await host.settle()
    }
    expect(host.tasks.listTasks()).toEqual([])
    expect(rows()).toEqual([2, 2])
    const page = host.tasks.history()
    await host.settle()
    expect(rows()).toEqual([2, 2])
    adding.shift()?.()
    await page
    // A row of the last task stands for its place.
    await waitFor(() => expect(rows()).toEqual(word === 'has' ? [1, 0] : [2, 2]))
  },
)

it('the history is written before the store is closed', async () => {
  const order: string[] = []
  const memory = memoryStore()
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => (release = resolve))
  const history = {
    ...(memory.history as NonNullable<Store['history']>),
    add: async () => {
      await gate
      order.push('added')
    },
  }
  const close = (): void => {
    order.push('closed')
    memory.close()
  }
  const host = hostOn({ ...memory, history, close }, { maxRetained: 0 })
  host.connect()
  host.submit('a')
  await host.settle()
  host.calls.at(-1)?.finish()
  await host.settle()
  const disposed = host.tasks.dispose()
  await host.settle()
  release()
  await disposed
  expect(order).toEqual(['added', 'closed'])
})

it('of a task that is too large the history keeps what it was', () => {
  const big = 'x'.repeat(300_000)
  const task = {
    id: 'big',
    name: 'large',
    instanceId: 'one',
    status: 'completed' as const,
    createdAt: 1,
    completedAt: 2,
    metadata: { big },
    commands: [{ toolName: 'step', args: { big }, status: 'success' as const, result: { big } }],
  } as unknown as Parameters<typeof pastCommandTask>[0]
  const past = pastCommandTask(task)
  expect(past).toMatchObject({ id: 'big', kind: 'command task', owner: 'one', name: 'large', status: 'completed' })
  expect(JSON.stringify(past).length).toBeLessThan(1000)
  expect(past.record['commands']).toMatchObject([{ toolName: 'step', status: 'success' }])
})
