/** Schedules and monitors where the packages `croner` and `re2js` are not installed: F16, F17. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'

vi.mock('../../../src/system/node-builtins.js', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../../src/system/node-builtins.js')>()
  const createRequire = () => (name: string) => {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' })
  }
  return {
    ...original,
    nodeBuiltin: (id: string) => (id === 'node:module' ? { createRequire } : original.nodeBuiltin(id as 'node:fs')),
  }
})

describe('without croner', () => {
  it('F16: cron and local times are refused with the command that installs it; other schedules need none', async () => {
    const { AsyncTaskManager } = await import('../../../src/index.js')
    const manager = new AsyncTaskManager({ clock: createManualClock(Date.UTC(2027, 0, 1)) })
    onTestFinished(() => manager.dispose())
    const missing = expect.objectContaining({
      code: 'PACKAGES_MISSING',
      message: 'Schedules with cron or a local time need the package croner. Run: npm install croner@11',
    }) as Error
    expect(() => manager.schedule({ cron: '* * * * *', message: 'x' })).toThrow(missing)
    expect(() => manager.schedule({ at: '2027-02-01T09:00', timeZone: 'Europe/Berlin', message: 'x' })).toThrow(missing)
    manager.schedule({ every: 60_000, timeZone: 'Europe/Berlin', message: 'x' })
    manager.schedule({ at: '2027-02-01T09:00Z', message: 'x' })
    expect(manager.schedules()).toHaveLength(2)
  })

  it('F16: a stored expression is reported when it is due, stays in the store, and keeps no other from firing', async () => {
    const { AsyncTaskManager } = await import('../../../src/index.js')
    const store = memoryStore()
    const clock = createManualClock(Date.UTC(2027, 0, 1))
    const first = new AsyncTaskManager({ store, clock })
    first.schedule({ in: 1000, owner: 'ada', message: 'later' })
    first.schedule({ every: 60_000, owner: 'ada', message: 'x' })
    await first.dispose()
    const [row, other] = store.contents().featureStates
    if (row === undefined || other === undefined) expect.unreachable()
    const { in: _, ...data } = row.data
    store.open()
    await store.write([{ table: 'featureStates', put: { ...row, data: { ...data, cron: '* * * * *' } } }])
    store.close()
    const onError = vi.fn()
    const second = new AsyncTaskManager({ store, clock, onError })
    onTestFinished(() => second.dispose())
    clock.advance(60_000)
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'PACKAGES_MISSING' }), {
      source: 'schedule',
      owner: 'ada',
    })
    await second.stored()
    expect(second.getPendingNotifications('ada')).toHaveLength(1)
    expect(store.contents().featureStates).toHaveLength(2)
    clock.advance(120_000)
    expect(onError).toHaveBeenCalledOnce()
  })
})

it('F17: without re2js, a monitor with a regular expression is refused with the command that installs it; others need none', async () => {
  const { AsyncTaskManager } = await import('../../../src/index.js')
  const manager = new AsyncTaskManager({ clock: createManualClock(Date.UTC(2027, 0, 1)) })
  onTestFinished(() => manager.dispose())
  const { id: taskId } = manager.registerTask({ id: 'a', subagentName: 'x', goalPrompt: 'x' })
  expect(() => manager.monitor({ taskId }, { match: /x/ })).toThrow(
    expect.objectContaining({
      code: 'PACKAGES_MISSING',
      message: 'Monitors with a regular expression need the package re2js. Run: npm install re2js@2',
    }) as Error,
  )
  expect(manager.monitors()).toEqual([])
  manager.monitor({ taskId }, { match: ['x', 'y'] })
  expect(manager.monitors()).toHaveLength(1)
})
