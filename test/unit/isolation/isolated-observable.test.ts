/** Observables for the host: the exceptions of their subscribers are reported. */
import { filter, map, Subject } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { IsolatedObservable } from '../../../src/isolation/isolated-observable.js'

function setUp() {
  const report = vi.fn()
  const source = new Subject<number>()
  const handedOut = new IsolatedObservable<number>(report, (subscriber) => source.subscribe(subscriber))
  return { report, source, handedOut }
}

const boom = (): never => {
  throw new Error('boom')
}

describe('an isolated Observable', () => {
  it.each([
    ['a function', boom],
    ['an observer', { next: boom }],
  ])('A2: reports what %s throws, and goes on with it and with the others', (_, subscriber) => {
    const { report, source, handedOut } = setUp()
    const other = vi.fn()
    handedOut.subscribe(subscriber as (value: number) => void)
    handedOut.subscribe(other)
    source.next(1)
    source.next(2)
    expect(report.mock.calls).toEqual([[new Error('boom')], [new Error('boom')]])
    expect(other.mock.calls).toEqual([[1], [2]])
  })

  it('A2: reports what a completion handler and an error handler throw', () => {
    const completing = setUp()
    completing.handedOut.subscribe({ complete: boom })
    completing.source.complete()
    expect(completing.report).toHaveBeenCalledExactlyOnceWith(new Error('boom'))

    const failing = setUp()
    failing.handedOut.subscribe({ error: boom })
    failing.source.error(new Error('source'))
    expect(failing.report).toHaveBeenCalledExactlyOnceWith(new Error('boom'))
  })

  it('A2: reports an error that its subscriber does not handle, and passes on one that it does', () => {
    const { report, source, handedOut } = setUp()
    const onError = vi.fn()
    handedOut.subscribe()
    handedOut.subscribe({ error: onError })
    source.error(new Error('source'))
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('source'))
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('source'))
  })

  it('takes three callbacks, as RxJS does', () => {
    const { source, handedOut } = setUp()
    const calls: unknown[] = []
    handedOut.subscribe(
      (value) => calls.push(value),
      null,
      () => calls.push('complete'),
    )
    handedOut.subscribe(null, (error) => calls.push(error), null)
    source.next(1)
    source.complete()
    expect(calls).toEqual([1, 'complete'])

    const failing = setUp()
    failing.handedOut.subscribe(null, (error) => calls.push(error), null)
    failing.source.error('lost')
    expect(calls).toEqual([1, 'complete', 'lost'])
  })

  it('calls the methods of an observer as methods', () => {
    const { source, handedOut } = setUp()
    const observer = {
      seen: [] as number[],
      next(value: number) {
        this.seen.push(value)
      },
    }
    handedOut.subscribe(observer)
    source.next(1)
    expect(observer.seen).toEqual([1])
  })

  it('A2: isolates what is piped from it', () => {
    const { report, source, handedOut } = setUp()
    const piped = handedOut.pipe(
      filter((value) => value % 2 === 0),
      map((value) => value * 10),
    )
    const values: number[] = []
    piped.subscribe(boom)
    piped.pipe(map((value) => value + 1)).subscribe((value) => values.push(value))
    source.next(1)
    source.next(2)
    source.next(4)
    expect(values).toEqual([21, 41])
    expect(report).toHaveBeenCalledTimes(2)
    expect(handedOut.pipe()).toBe(handedOut)
  })

  it('A2: what an operator throws ends that subscription alone, as an error', () => {
    const { report, source, handedOut } = setUp()
    const values: number[] = []
    handedOut.pipe(map(boom)).subscribe()
    handedOut.subscribe((value) => values.push(value))
    source.next(1)
    source.next(2)
    expect(report).toHaveBeenCalledExactlyOnceWith(new Error('boom'))
    expect(values).toEqual([1, 2])
  })

  it('needs no callback', () => {
    const { report, source, handedOut } = setUp()
    handedOut.subscribe({})
    handedOut.subscribe()
    source.next(1)
    source.complete()
    expect(report).not.toHaveBeenCalled()
  })

  it('unsubscribes from its source', () => {
    const { source, handedOut } = setUp()
    const subscription = handedOut.pipe(map((value) => String(value))).subscribe()
    expect(source.observed).toBe(true)
    subscription.unsubscribe()
    expect(source.observed).toBe(false)
  })
})
