/** Whether the agent is busy: from a function that is polled, or from an Observable. */
import { BehaviorSubject, concat, NEVER, Observable, of, Subject, throwError } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { BusyWatch, type BusySource } from '../../../src/features/delivery/busy.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import type { OnError } from '../../../src/isolation/error-report.js'

function withResolvers<T>() {
  let resolve: (value: T) => void = () => undefined
  const promise = new Promise<T>((onResolve) => (resolve = onResolve))
  return { promise, resolve }
}

function watch(source: BusySource) {
  const report = vi.fn<OnError>()
  const clock = createManualClock()
  const busy = new BusyWatch(source, report, 'main', clock)
  const onIdle = vi.fn()
  const subscription = busy.idle$.subscribe(onIdle)
  onTestFinished(() => subscription.unsubscribe())
  return { busy, report, onIdle, subscription, clock }
}

describe('a function', () => {
  it('is called every time, and must be polled', () => {
    const isAgentBusy = vi.fn(() => true)
    const { busy, onIdle } = watch(isAgentBusy)
    expect(isAgentBusy).not.toHaveBeenCalled()
    expect(busy.isPolled).toBe(true)
    expect(busy.isBusy()).toBe(true)
    isAgentBusy.mockReturnValue(false)
    expect(busy.isBusy()).toBe(false)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
    expect(onIdle).not.toHaveBeenCalled()
  })

  it('means idle with any value that is not true, null included', () => {
    const { busy, report } = watch(() => null as unknown as boolean)
    expect(busy.isBusy()).toBeFalsy()
    expect(report).not.toHaveBeenCalled()
  })

  it('counts as busy when it throws, and is reported', () => {
    const { busy, report } = watch(() => {
      throw new Error('cannot tell')
    })
    expect(busy.isBusy()).toBe(true)
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('cannot tell'), { source: 'busy', owner: 'main' })
  })
})

describe('a function that returns a promise', () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  it('means busy until it has answered, and idle while its answer is emitted', async () => {
    const { promise, resolve } = withResolvers<boolean>()
    const isAgentBusy = vi.fn(() => promise)
    const { busy } = watch(isAgentBusy)
    const seen: boolean[] = []
    busy.answered$.subscribe(() => seen.push(busy.isBusy()))
    expect([busy.isBusy(), busy.isBusy()]).toEqual([true, true])
    expect(isAgentBusy).toHaveBeenCalledTimes(1)
    resolve(false)
    await turn()
    expect(seen).toEqual([false])
    expect(busy.isBusy()).toBe(true)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
  })

  it('may be an object whose then calls back at once, and more than once', async () => {
    // Such as the query of a database.
    const thenable = {
      then: (onAnswer: (isBusy: boolean) => void) => {
        onAnswer(false)
        onAnswer(true)
      },
    } as unknown as PromiseLike<boolean>
    const isAgentBusy = vi.fn(() => thenable)
    const { busy } = watch(isAgentBusy)
    const seen: boolean[] = []
    busy.answered$.subscribe(() => seen.push(busy.isBusy()))
    expect(busy.isBusy()).toBe(true)
    expect(seen).toEqual([])
    await turn()
    expect(seen).toEqual([false])
    expect(isAgentBusy).toHaveBeenCalledTimes(1)
  })

  it('counts as busy when it rejects, and is reported and asked again', async () => {
    const isAgentBusy = vi.fn(() => Promise.reject(new Error('cannot say')))
    const { busy, report } = watch(isAgentBusy)
    busy.isBusy()
    await turn()
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('cannot say'), { source: 'busy', owner: 'main' })
    expect(busy.isBusy()).toBe(true)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
    await turn()
  })

  it('is given up after 30 s, reported, and asked again; its late answer is not used', async () => {
    const { promise, resolve } = withResolvers<boolean>()
    const isAgentBusy = vi.fn(() => promise)
    const { busy, report, clock } = watch(isAgentBusy)
    const onAnswer = vi.fn()
    busy.answered$.subscribe(onAnswer)
    busy.isBusy()
    clock.advance(29_999)
    expect([busy.isBusy(), isAgentBusy.mock.calls.length]).toEqual([true, 1])
    clock.advance(1)
    const error = new Error('isAgentBusy has not answered within 30 s. It is called again.')
    expect(report).toHaveBeenCalledExactlyOnceWith(error, { source: 'busy', owner: 'main' })
    resolve(false)
    await turn()
    expect(onAnswer).not.toHaveBeenCalled()
    isAgentBusy.mockReturnValue(Promise.resolve(true))
    expect([busy.isBusy(), isAgentBusy.mock.calls.length]).toEqual([true, 2])
    await turn()
    expect(clock.pending).toBe(0)
  })

  it('leaves no timer when it is dropped, and is asked again', () => {
    const isAgentBusy = vi.fn(() => new Promise<boolean>(() => undefined))
    const { busy, clock } = watch(isAgentBusy)
    busy.isBusy()
    busy.forget()
    expect(clock.pending).toBe(0)
    busy.isBusy()
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
    busy.forget()
  })

  it('is not used any more once it was replaced', async () => {
    const { promise, resolve } = withResolvers<boolean>()
    const { busy } = watch(() => promise)
    const onAnswer = vi.fn()
    busy.answered$.subscribe(onAnswer)
    busy.isBusy()
    busy.source = () => true
    resolve(false)
    await turn()
    expect(onAnswer).not.toHaveBeenCalled()
  })
})

describe('an Observable', () => {
  it('means busy until its first value, and is not polled', () => {
    const busy$ = new Subject<boolean>()
    const { busy, onIdle } = watch(busy$)
    expect(busy.isPolled).toBe(false)
    expect(busy.isBusy()).toBe(true)
    busy$.next(false)
    expect(busy.isBusy()).toBe(false)
    expect(onIdle).toHaveBeenCalledTimes(1)
  })

  it('emits when it becomes idle, and not for each false', () => {
    const busy$ = new BehaviorSubject(true)
    const { busy, onIdle } = watch(busy$)
    busy$.next(true)
    expect(onIdle).not.toHaveBeenCalled()
    busy$.next(false)
    busy$.next(false)
    expect(onIdle).toHaveBeenCalledTimes(1)
    busy$.next(true)
    expect(busy.isBusy()).toBe(true)
    busy$.next(false)
    expect(onIdle).toHaveBeenCalledTimes(2)
  })

  it('keeps its last value when it completes', () => {
    const busy$ = new BehaviorSubject(false)
    const { busy, onIdle } = watch(busy$)
    busy$.complete()
    expect(busy.isBusy()).toBe(false)
    busy.idle$.subscribe(onIdle)
    expect(busy.isBusy()).toBe(false)

    const busyToTheEnd = watch(concat(of(false), of(true)))
    expect(busyToTheEnd.busy.isBusy()).toBe(true)
  })

  it('counts as idle after an error, which is reported once', () => {
    const { busy, report, onIdle } = watch(
      concat(
        of(true),
        throwError(() => new Error('lost')),
      ),
    )
    expect(busy.isBusy()).toBe(false)
    expect(onIdle).toHaveBeenCalledTimes(1)
    busy.idle$.subscribe()
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('lost'), { source: 'busy', owner: 'main' })
  })

  it('that throws when it is subscribed to counts as idle', () => {
    const { busy, report } = watch(
      new Observable<boolean>(() => {
        throw new Error('no subscription')
      }),
    )
    expect(busy.isBusy()).toBe(false)
    expect(report).toHaveBeenCalledTimes(1)
  })

  it('is subscribed to only while its watch is, and means busy again afterwards', () => {
    const busy$ = new Subject<boolean>()
    const { busy, subscription } = watch(busy$)
    busy$.next(false)
    subscription.unsubscribe()
    expect(busy$.observed).toBe(false)
    const again = busy.idle$.subscribe()
    onTestFinished(() => again.unsubscribe())
    expect(busy$.observed).toBe(true)
    expect(busy.isBusy()).toBe(true)
  })
})

describe('a source that replaces another', () => {
  it('means busy until its first value, which counts as a change even if it is the last value of the other', () => {
    const { busy, onIdle } = watch(new BehaviorSubject(false))
    expect(onIdle).toHaveBeenCalledTimes(1)
    const next$ = new Subject<boolean>()
    busy.source = next$
    expect(busy.isBusy()).toBe(true)
    next$.next(false)
    expect(onIdle).toHaveBeenCalledTimes(2)
  })

  it('is the only one that is subscribed to', () => {
    const old$ = new BehaviorSubject(true)
    const { busy, onIdle } = watch(old$)
    busy.source = NEVER
    expect(old$.observed).toBe(false)
    old$.next(false)
    expect(onIdle).not.toHaveBeenCalled()
    busy.source = () => false
    expect(busy.isPolled).toBe(true)
    expect(busy.isBusy()).toBe(false)
  })

  it('is subscribed to although the other has completed', () => {
    const { busy } = watch(of(false))
    busy.source = new BehaviorSubject(true)
    expect(busy.isBusy()).toBe(true)
  })
})
