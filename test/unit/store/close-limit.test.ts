import { expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { InstanceManager, TaskManager } from '../../../src/server/index.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'

const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

function stuckHost(method: 'write' | 'close') {
  const store: Store = { ...memoryStore(), name: 'my store', [method]: () => new Promise(() => undefined) }
  const clock = createManualClock()
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  /** Disposes of a manager of the store. Returns whether it has been held for the whole limit, and what was reported. */
  const dispose = async (manager: { dispose(): Promise<void> }) => {
    let isDisposed = false
    const disposing = manager.dispose().then(() => (isDisposed = true))
    await settle()
    clock.advance(29_999)
    await settle()
    const before = { isDisposed, errors: [...errors] }
    clock.advance(1)
    await disposing
    return { before, errors, timers: clock.pending }
  }
  return { options: { store, clock, onError }, dispose }
}

const reported = (message: string) => ({
  before: { isDisposed: false, errors: [] },
  errors: [{ code: 'STORE_UNAVAILABLE', message: `my store: ${message} within 30000 ms. It is left.` }],
  timers: 0,
})

it('A9: a store whose write never settles does not hold the end of a manager, and is reported', async () => {
  const { options, dispose } = stuckHost('write')
  const manager = new AsyncTaskManager(options)
  manager.pause()
  await settle()
  expect(await dispose(manager)).toMatchObject(reported('its last write has not ended'))
})

it('A9: a store whose close never settles does not hold the end of a manager, and is reported', async () => {
  const host = stuckHost('close')
  const manager = new AsyncTaskManager(host.options)
  expect(await host.dispose(manager)).toMatchObject(reported('its end has not ended'))
  const { options, dispose } = stuckHost('close')
  const taskManager = new TaskManager({ instances: new InstanceManager(), ...options })
  expect(await dispose(taskManager)).toMatchObject(reported('its end has not ended'))
})
