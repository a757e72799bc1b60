// What a lookup of a subagent leaves behind, however it ends.
import { getEventListeners } from 'node:events'
import { Subject } from 'rxjs'
import { expect, it } from 'vitest'
import type { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { withLookupLimits } from '../../../src/tools/lookup-limits.js'

function createSubject() {
  const clock = createManualClock()
  const notifications$ = new Subject<never>()
  const caller = new AbortController()
  const manager = { reads: { clock, notifications$ } } as unknown as AsyncTaskManager
  const limits = { manager, timeoutMs: 1000, signal: caller.signal }
  const left = () => [notifications$.observed, clock.pending, getEventListeners(caller.signal, 'abort').length]
  return { clock, notifications$, caller, limits, left }
}

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

it('a lookup that ends leaves no subscription, no timer and no listener', async () => {
  const { limits, left } = createSubject()
  const found = withLookupLimits(limits, () => Promise.resolve('found'))
  expect(left()).toEqual([true, 1, 1])
  expect(await found).toBe('found')
  expect(left()).toEqual([false, 0, 0])
  await expect(withLookupLimits(limits, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(left()).toEqual([false, 0, 0])
})

it('a lookup is aborted from its beginning when its call was aborted before, with the reason', async () => {
  const { caller, limits, left } = createSubject()
  caller.abort(new Error('early'))
  const seen = await withLookupLimits(limits, ({ aborted, reason }) => Promise.resolve([aborted, reason] as unknown[]))
  expect(seen).toEqual([true, new Error('early')])
  expect(left()).toEqual([false, 0, 0])
})

it('a lookup ends with its call, its deadline, or the manager', async () => {
  for (const [end, message] of [
    ['caller', /^left$/],
    ['clock', /^The lookup of the subagent did not end within 1 s\.$/],
    ['manager', /disposed/],
  ] as const) {
    const { clock, notifications$, caller, limits, left } = createSubject()
    const ended = expect(withLookupLimits(limits, never)).rejects.toThrow(message)
    clock.advance(999)
    if (end === 'caller') caller.abort(new Error('left'))
    else if (end === 'clock') clock.advance(1)
    else notifications$.complete()
    await ended
    expect(left()).toEqual([false, 0, 0])
  }
})
