/**
 * A setup file of every test file: a test fails when the code that it ran has left something behind. Managers that the test made are disposed first, so
 * the test does not have to do that. `leftovers.ts` and docs/tests.md describe what is recorded.
 */
import { setImmediate } from 'node:timers/promises'
import { beforeEach, vi } from 'vitest'
import {
  forget,
  leftovers,
  madeManagers,
  note,
  record,
  recordingClock,
  watchGlobals,
  type Disposable,
} from './leftovers.js'

/** Returns a class that records each of its instances. */
const noting = <Class extends new (...args: never[]) => Disposable>(of: Class): Class =>
  new Proxy(of, {
    construct: (target, args, newTarget) => note(Reflect.construct(target, args, newTarget) as Disposable),
    get: (target, key, receiver): unknown => {
      const value: unknown = Reflect.get(target, key, receiver)
      // A static method creates its instance with the original class, which does not record it.
      return key === 'restore'
        ? (...args: unknown[]) => note((value as (...args: unknown[]) => Disposable)(...args))
        : value
    },
  })

vi.mock(import('../../src/async-tasks/manager.js'), async (load) => {
  const module = await load()
  return { ...module, AsyncTaskManager: noting(module.AsyncTaskManager) }
})
vi.mock(import('../../src/command-tasks/task-manager.js'), async (load) => {
  const module = await load()
  return { ...module, TaskManager: noting(module.TaskManager) }
})
vi.mock(import('../../src/command-tasks/instances/instance-manager.js'), async (load) => {
  const module = await load()
  return { ...module, InstanceManager: noting(module.InstanceManager) }
})
vi.mock(import('../../src/testing/manual-clock.js'), async (load) => {
  const module = await load()
  return { ...module, createManualClock: (start?: number) => recordingClock(module.createManualClock(start)) }
})
vi.mock(import('../../src/system/clock.js'), async (load) => {
  const module = await load()
  return { ...module, systemClock: recordingClock(module.systemClock) }
})
vi.mock(import('../../src/server/heartbeat.js'), async (load) => {
  const module = await load()
  const createHeartbeat: typeof module.createHeartbeat = (...args) => {
    const heartbeat = module.createHeartbeat(...args)
    const keep: typeof heartbeat.keep = (kept) => {
      const remove = heartbeat.keep(kept)
      let isKept = true
      record('heartbeat', () => isKept)
      return () => {
        isKept = false
        remove()
      }
    }
    return { ...heartbeat, keep }
  }
  return { ...module, createHeartbeat }
})

watchGlobals()

/** The names that Node gives to what a test opens and must close, because it keeps the process alive. */
const HANDLES = ['TCPServerWrap', 'TCPSocketWrap', 'ProcessWrap']

const openHandles = (): string[] => process.getActiveResourcesInfo().filter((name) => HANDLES.includes(name))

/** How often the event loop may turn until everything is closed. The end of a connection or of a program takes a while. */
const MAX_TURNS = 10_000

beforeEach(({ onTestFinished }) => {
  forget()
  const before = openHandles().length
  // Registered first, so it runs last: the hooks of the test have already closed what they opened.
  onTestFinished(async () => {
    for (const one of madeManagers()) void one.dispose()
    for (let turn = 0; turn < 3; turn += 1) await setImmediate()
    for (let turn = 0; turn < MAX_TURNS && (openHandles().length > before || leftovers().length > 0); turn += 1) {
      await setImmediate()
    }
    const left = leftovers().map(({ kind, madeBy }) => `${kind} made by ${madeBy.slice(0, 3).join(' < ')}`)
    const handles = openHandles()
    if (handles.length > before) left.push(`open handles: ${handles.join(', ')}; before the test ${before}`)
    if (left.length > 0) throw new Error(`The test has left behind:\n${[...new Set(left)].slice(0, 10).join('\n')}`)
  })
})
