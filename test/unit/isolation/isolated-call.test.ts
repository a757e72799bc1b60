/** A2: what the host's code throws is reported, and reaches nobody else. */
import { createManualClock } from 'agent-tasks/testing'
import { expect, it, vi } from 'vitest'
import { isolateReport, reportToConsole } from '../../../src/isolation/error-report.js'
import { toInspectFunction } from '../../../src/isolation/inspection.js'
import { IsolatedController } from '../../../src/isolation/isolated-controller.js'
import { callIsolated, isThenable } from '../../../src/isolation/isolated-call.js'
import { observeClock, observerOf } from '../../../src/isolation/observed-clock.js'

const boom = (): never => {
  throw new Error('boom')
}

it('A2: reports what a call throws, and what its promise or thenable rejects with', async () => {
  const report = vi.fn()
  callIsolated(boom, report)
  expect(report).toHaveBeenCalledExactlyOnceWith(new Error('boom'))
  callIsolated(() => Promise.reject(new Error('later')), report)
  callIsolated(
    () => ({ then: (_resolve: unknown, reject: (error: Error) => void) => reject(new Error('then')) }),
    report,
  )
  callIsolated(() => Promise.resolve(1), report)
  expect(report).toHaveBeenCalledOnce()
  await new Promise(setImmediate)
  expect(report.mock.calls.slice(1)).toEqual([[new Error('later')], [new Error('then')]])
})

it('looks at the value of a call only as far as it needs to', () => {
  const report = vi.fn()
  const get = vi.fn(() => () => undefined)
  // A promise is read for its `then` twice: here, and where it is awaited.
  callIsolated(() => Object.defineProperty({}, 'then', { get }), report)
  expect(get).toHaveBeenCalledTimes(2)
  for (const value of [undefined, null, 0, 'then', { then: 1 }, {}, () => undefined]) {
    expect(isThenable(value)).toBe(false)
    callIsolated(() => value, report)
  }
  expect(isThenable({ then: () => undefined })).toBe(true)
  expect(report).not.toHaveBeenCalled()
})

it('A2: ignores what the report throws, and what it rejects with', async () => {
  const seen: unknown[] = []
  const report = isolateReport((...given) => {
    seen.push(given)
    return boom()
  })
  report('error', { source: 'stream' })
  // A host may pass an async function.
  const rejecting: () => unknown = () => Promise.reject(new Error('later'))
  isolateReport(rejecting)('error', { source: 'stream' })
  await new Promise(setImmediate)
  expect(seen).toEqual([['error', { source: 'stream' }]])
})

it('writes to the console what happened, and to which task, owner and delivery', () => {
  const write = vi.spyOn(console, 'error').mockReturnValue(undefined)
  reportToConsole('why', { source: 'handler' })
  reportToConsole('why', { source: 'handler', taskId: 'a' })
  reportToConsole('why', { source: 'delivery', owner: 'ann\u001b', deliveryId: 'delivery-1' })
  expect(write.mock.calls).toEqual([
    ['[agent-tasks] handler:', 'why'],
    ['[agent-tasks] handler of task a:', 'why'],
    ['[agent-tasks] delivery of owner ann  (delivery-1):', 'why'],
  ])
  write.mockRestore()
})

it('takes an inspector as a function, or as an observer whose method is called as one', () => {
  expect([toInspectFunction(undefined), toInspectFunction((event) => event)?.('event' as never)]).toEqual([
    undefined,
    'event',
  ])
  const observer = {
    seen: [] as unknown[],
    next(event: unknown) {
      return this.seen.push(event)
    },
  }
  const next = toInspectFunction(observer)
  expect([next?.('event' as never), observer.seen]).toEqual([1, ['event']])
  Reflect.deleteProperty(observer, 'next')
  expect(next?.('later' as never) ?? observer.seen).toEqual(['event'])
})

it('A2: an abort is the same with and without its signal, has its first reason, and isolates its listeners', () => {
  const report = vi.fn()
  const [early, late] = [new IsolatedController(report), new IsolatedController(report)]
  const { signal } = early
  signal.addEventListener('abort', boom)
  expect([early.aborted, early.reason, signal.aborted, early.signal === signal]).toEqual([
    false,
    undefined,
    false,
    true,
  ])
  for (const abort of [early, late]) {
    abort.abort('first')
    abort.abort('second')
    expect([abort.aborted, abort.reason, abort.signal.aborted, abort.signal.reason]).toEqual([
      true,
      'first',
      true,
      'first',
    ])
  }
  expect(early.signal).toBe(signal)
  expect(report).toHaveBeenCalledExactlyOnceWith(new Error('boom'))
  const other = new IsolatedController(report)
  other.abort()
  expect(other.reason).toMatchObject({ name: 'AbortError', message: 'This operation was aborted' })
  expect(other.signal.reason).toBe(other.reason)
})

it('knows the observer of a clock', () => {
  const clock = createManualClock()
  expect(observerOf(clock)).toBeUndefined()
  const observer = vi.fn()
  observeClock(clock, observer)
  expect([observerOf(clock), observerOf(createManualClock())]).toEqual([observer, undefined])
})

it('A2: an abort is heard before the listeners of its signal, read or not; an exception of that is reported, and nothing stays', () => {
  const report = vi.fn()
  const seen: unknown[] = []
  for (const isRead of ['never', 'before', 'later']) {
    const abort = new IsolatedController(report)
    expect(abort).toBeInstanceOf(AbortController)
    if (isRead === 'before') expect(abort.signal.aborted).toBe(false)
    const stop = abort.listen(() => {
      seen.push([isRead, abort.signal.aborted, abort.signal.reason])
      boom()
    })
    if (isRead !== 'never') abort.signal.addEventListener('abort', () => seen.push('heard'))
    abort.abort('now')
    abort.abort('again')
    stop()
    const stopped = new IsolatedController(report)
    const stopIt = stopped.listen(boom)
    if (isRead === 'later') expect(stopped.signal.aborted).toBe(false)
    stopIt()
    stopped.abort()
  }
  expect(seen).toEqual([['never', true, 'now'], ['before', true, 'now'], 'heard', ['later', true, 'now'], 'heard'])
  expect(report.mock.calls).toEqual([[new Error('boom')], [new Error('boom')], [new Error('boom')]])
})
