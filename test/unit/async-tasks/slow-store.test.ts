/** A store whose writes take a while: what follows from a change waits for its own write, and for no later one. */
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { memoryStore, StoreError, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { tick } from '../../support/limited-tasks.js'

const task = (id: string) => ({ id, subagentName: 'agent', goalPrompt: 'go' })
const OUTPUT = { final_message: 'done' }

async function setUp(options: AsyncTaskManagerOptions = {}) {
  const memory = memoryStore()
  const clock = createManualClock()
  const answers: ((error?: StoreError) => void)[] = []
  const state = { isSlow: false }
  const store: Store = {
    ...memory,
    write: async (changes) => {
      await memory.write(changes)
      if (!state.isSlow) return
      const error = await new Promise<StoreError | undefined>((resolve) => answers.push(resolve))
      if (error !== undefined) throw error
    },
  }
  const manager = new AsyncTaskManager({ store, clock, maxAsyncTasks: -1, onError: () => undefined, ...options })
  onTestFinished(async () => {
    state.isSlow = false
    for (const answer of answers.splice(0)) answer()
    await manager.dispose()
  })
  for (const id of ['a', 'b']) manager.registerTask(task(id))
  await manager.stored()
  const ended: string[] = []
  manager.settled$.subscribe(({ id }) => ended.push(id))
  state.isSlow = true
  return {
    manager,
    clock,
    ended,
    memory,
    /** How many writes wait for their answer: never more than one. */
    open: () => answers.length,
    /** The present write is answered. */
    answer: async (error?: StoreError) => {
      answers.shift()?.(error)
      await tick()
    },
  }
}

it('an end is notified when its write is answered, also while a later change waits for the next write', async () => {
  const { manager, ended, open, answer } = await setUp()
  manager.completeTask('a', OUTPUT)
  await tick()
  manager.completeTask('b', OUTPUT)
  await tick()
  expect([ended, open()]).toEqual([[], 1])
  await answer()
  expect([ended, open()]).toEqual([['a'], 1])
  await answer()
  expect([ended, open()]).toEqual([['a', 'b'], 0])
})

it('deadlines pass while a write takes long', async () => {
  const { manager, clock, open, answer } = await setUp({ graceMs: 0 })
  manager.completeTask('a', OUTPUT)
  await tick()
  manager.registerTask({ ...task('c'), timeoutMs: 100 })
  expect(clock.nextDue).toBe(clock.now() + 100)
  clock.advance(100)
  expect(manager.getTask('c')).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
  while (open() > 0) await answer()
})

it('a wait returns what is stored: an end that comes while it waits for another one is stored first', async () => {
  const { manager, open, answer } = await setUp()
  let waited: readonly string[] | undefined
  void manager.waitFor(['a', 'b'], { mode: 'any' }).then(({ settled }) => (waited = settled.map(({ id }) => id)))
  await tick()
  manager.completeTask('a', OUTPUT)
  await tick()
  manager.completeTask('b', OUTPUT)
  await answer()
  expect([waited, open()]).toEqual([undefined, 1])
  await answer()
  expect(waited).toEqual(['a', 'b'])
  while (open() > 0) await answer()
})

it('a run is aborted when its cancellation is stored, before that is notified', async () => {
  const { manager, ended, open, answer } = await setUp()
  const log: string[] = []
  const abortController = new AbortController()
  abortController.signal.addEventListener('abort', () => log.push(`aborted, ${ended.length} notified`))
  manager.registerTask({ ...task('c'), abortController })
  await tick()
  await answer()
  expect(manager.cancelTask('c')).toBe(true)
  await tick()
  expect([log, open()]).toEqual([[], 1])
  await answer()
  expect([log, ended]).toEqual([['aborted, 0 notified'], ['c']])
})

it('the output of a task ends when its end is stored, for those who subscribe before and meanwhile', async () => {
  const { manager, answer } = await setUp()
  const log: string[] = []
  const follow = (name: string) => manager.output$('a').subscribe({ complete: () => log.push(name) })
  follow('before')
  manager.completeTask('a', OUTPUT)
  await tick()
  follow('meanwhile')
  expect(log).toEqual([])
  await answer()
  expect(log).toEqual(['before', 'meanwhile'])
  // What changes afterwards keeps nobody waiting.
  manager.markNotified('a')
  follow('after')
  expect(log).toEqual(['before', 'meanwhile', 'after'])
  await tick()
  await answer()
})

it('a lease that is accepted before it is refused stays accepted, and is stored later', async () => {
  const { manager, clock, memory, answer } = await setUp()
  manager.completeTask('a', OUTPUT)
  await tick()
  await answer()
  const lease = manager.lease()
  await tick()
  lease?.acknowledge()
  await answer(new StoreError('STORE_FULL', 'the disk is full'))
  await expect(lease?.stored).rejects.toMatchObject({ code: 'STORE_FULL' })
  expect(manager.getTask('a')?.delivery).toBe('delivered')
  clock.advance(100)
  await tick()
  await answer()
  expect(memory.contents().deliveries).toMatchObject([{ id: lease?.deliveryId, state: 'accepted' }])
})

it('nothing is left when everything is disposed of during a write', async () => {
  const { manager, clock, memory, answer } = await setUp()
  manager.completeTask('a', OUTPUT)
  await tick()
  manager.completeTask('b', OUTPUT)
  let isDisposed = false
  void manager.dispose().then(() => (isDisposed = true))
  await tick()
  expect(isDisposed).toBe(false)
  await answer()
  await answer()
  expect([isDisposed, clock.pending]).toEqual([true, 0])
  expect(memory.contents().tasks.map(({ status }) => status)).toEqual(['completed', 'completed'])
})
