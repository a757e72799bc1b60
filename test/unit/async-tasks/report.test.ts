/** A2: the exceptions of a host's callbacks are reported, also without an onError. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

describe('without onError', () => {
  afterEach(() => void vi.restoreAllMocks())

  it('A2: what a handler throws is written to the console, with its task', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    const error = new Error('a handler')
    manager.onTaskCancelled(() => {
      throw error
    })
    manager.registerTask({ id: 'a', subagentName: 'x', goalPrompt: 'y' })
    manager.cancelTask('a')
    expect(written).toHaveBeenCalledExactlyOnceWith('[agent-tasks] handler of task a:', error)
    await manager.dispose()
  })
})

describe('an abort listener of a run', () => {
  it('A2: that throws is reported with its task, and the task is still cancelled', async () => {
    const onError = vi.fn()
    const manager = new AsyncTaskManager({ clock: createManualClock(), onError })
    const error = new Error('a listener')
    const { id } = manager.launch({ subagentName: 'x', goalPrompt: 'y' }, (_, { signal }) => {
      signal.addEventListener('abort', () => {
        throw error
      })
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    })
    await Promise.resolve()
    manager.cancelTask(id)
    expect(onError).toHaveBeenCalledExactlyOnceWith(error, { source: 'abort-listener', taskId: id })
    expect(manager.getTask(id)).toMatchObject({ status: 'cancelled' })
    await manager.dispose()
  })
})
