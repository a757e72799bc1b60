/** What waits, sums and streams of async tasks leave behind: watchers, askers, and subscribers. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createMachine } from 'xstate'
import type { AsyncTaskMachine } from '../../../machines/async-task.js'
import { AsyncTaskManager } from '../../../src/index.js'
import { childrenOf } from '../../../src/features/families/families.js'
import { registryOf } from '../../../src/async-tasks/manager.js'
import type { TaskRegistry } from '../../../src/async-tasks/registry.js'
import { OwnerTable } from '../../../src/async-tasks/owner-table.js'
import { taskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { waitForTasks } from '../../../src/async-tasks/waiting.js'
import { createManualClock } from '../../../src/testing/index.js'

function setUp() {
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ clock, maxAsyncTasks: -1, onError: () => undefined })
  onTestFinished(() => manager.dispose())
  const registry = registryOf(manager)
  for (const id of ['parent', 'a']) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
  return { clock, manager, registry }
}

/** How many watchers are left. */
function watchersOf(registry: TaskRegistry): () => number {
  const watchers = registry.use(taskWatchers)
  const added = vi.spyOn(watchers, 'add')
  const removed = vi.spyOn(watchers, 'remove')
  return () => added.mock.calls.filter((call) => !removed.mock.calls.some((other) => call[1] === other[1])).length
}

describe('a wait of a run for its tasks', () => {
  it.each(['ends', 'aborts'] as const)('F7: leaves no watcher behind when it %s', async (how) => {
    const { manager, registry } = setUp()
    const left = watchersOf(registry)
    const entry = registry.history.get('parent')
    if (entry === undefined) expect.unreachable()
    const controller = new AbortController()
    manager.registerTask({ id: 'child', subagentName: 'helper', goalPrompt: 'help', owner: 'run:parent' })
    const children = childrenOf(manager, entry, { signal: controller.signal, isCurrent: () => true })
    const wait = children.waitFor().catch(() => 'aborted')
    expect(left()).toBe(2)
    if (how === 'ends') manager.completeTask('child', {})
    else controller.abort()
    await wait
    expect(left()).toBe(0)
  })
})

describe('a wait that fails', () => {
  it('F6: ends its asker, and leaves no watcher and no timer behind', async () => {
    const { clock, registry } = setUp()
    const left = watchersOf(registry)
    const end = vi.fn()
    const { signal } = new AbortController()
    signal.addEventListener = () => {
      throw new Error('no listeners')
    }
    const options = { signal, timeoutMs: 1000, asker: { begin: () => ({ ask: () => true, end }) } }
    await expect(waitForTasks(registry, ['a'], options, 'd')).rejects.toThrow('no listeners')
    expect(end).toHaveBeenCalledOnce()
    expect(left()).toBe(0)
    expect(clock.pending).toBe(0)
    expect(registry.ledger.lease('d')).toBeUndefined()
  })
})

describe('a stream of output', () => {
  it('F3: ends on disposal, also when the machine of its task ignores the cancellation', async () => {
    const task = createMachine({ initial: 'running', states: { running: {} } }) as unknown as AsyncTaskMachine
    const manager = new AsyncTaskManager({ machines: { task }, onError: () => undefined })
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'help' })
    const complete = vi.fn()
    manager.output$('a').subscribe({ complete })
    const disposal = manager.dispose()
    expect(manager.getTask('a')?.status).toBe('running')
    expect(complete).toHaveBeenCalledOnce()
    await disposal
  })
})

describe('a table of owners', () => {
  it('drops those that were set longest ago, when there are too many', () => {
    const table = new OwnerTable<number>({ owners: 3, bytes: Infinity })
    for (const owner of ['a', 'b', 'c']) expect(table.set(owner, 1)).toEqual([])
    table.set('a', 2)
    expect(table.set('d', 1)).toEqual(['b'])
    expect(['a', 'b', 'c', 'd'].map((owner) => table.get(owner))).toEqual([2, undefined, 1, 1])
    expect(table.delete('b')).toBe(false)
    table.delete('a')
    expect(table.set('e', 1)).toEqual([])
  })

  it('drops as many as the bytes of their names and values ask for', () => {
    const table = new OwnerTable<number>({ owners: 100, bytes: 1000 })
    for (const owner of ['a', 'b', 'c']) table.set(owner, 1)
    expect(table.set('x'.repeat(200), 1)).toEqual(['a', 'b'])
    expect(table.size).toBe(2)
  })
})
