/** The in-process engine and its abort signals. */
import { describe, expect, it, vi } from 'vitest'
import { createInProcessEngine } from '../../../src/engine/in-process.js'
import { isolateAbortListeners } from '../../../src/isolation/isolated-signal.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function setUp() {
  const clock = createManualClock()
  const onError = vi.fn()
  return { clock, onError, engine: createInProcessEngine({ clock, onError }) }
}

const never = () => new Promise(() => undefined)

describe('the in-process engine', () => {
  it('starts work in a later microtask and resolves with its outcome', async () => {
    const { engine } = setUp()
    const started: string[] = []
    const runs = [
      engine.start({ id: 'a', graceMs: 0, run: () => started.push('a') && 'value' }),
      engine.start({ id: 'b', graceMs: 0, run: () => Promise.reject(new Error('no')) }),
      engine.start({
        id: 'c',
        graceMs: 0,
        run: () => {
          throw new Error('at once')
        },
      }),
    ]
    expect(started).toEqual([])
    expect(await Promise.all(runs.map((run) => run.settled))).toEqual([
      { type: 'returned', value: 'value' },
      { type: 'threw', reason: new Error('no') },
      { type: 'threw', reason: new Error('at once') },
    ])
  })

  it('does not start work that was aborted before', async () => {
    const { engine, clock } = setUp()
    const run = vi.fn()
    const started = engine.start({ id: 'a', graceMs: 100, run })
    started.abort()
    expect(await started.settled).toEqual({ type: 'skipped' })
    expect(run).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })

  it('does not abort work that has ended, and its runs can be spread', async () => {
    const { engine, clock } = setUp()
    const signals: AbortSignal[] = []
    const start = () => ({ ...engine.start({ id: 'a', graceMs: 100, run: ({ signal }) => signals.push(signal) }) })
    const ended = start()
    await ended.settled
    ended.abort()
    expect(signals[0]?.aborted).toBe(false)
    expect(clock.pending).toBe(0)
    const wrapped = start()
    wrapped.abort()
    expect(await wrapped.settled).toEqual({ type: 'skipped' })
  })

  it('waits for aborted work to end, for its grace period at most', async () => {
    const { engine, clock } = setUp()
    const polite = engine.start({
      id: 'polite',
      graceMs: 100,
      run: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    })
    const deaf = engine.start({ id: 'deaf', graceMs: 100, run: never })
    await Promise.resolve()
    polite.abort('why')
    deaf.abort('why')
    deaf.abort('again')
    expect(await polite.settled).toEqual({ type: 'threw', reason: new Error('stopped') })
    clock.advance(99)
    expect(await Promise.race([deaf.settled, Promise.resolve('not yet')])).toBe('not yet')
    clock.advance(1)
    expect(await deaf.settled).toEqual({ type: 'abandoned' })
    expect(clock.pending).toBe(0)
  })

  it('has defaults: the clock of the platform, and no report of abort listeners that throw', async () => {
    const run = createInProcessEngine().start({
      id: 'a',
      graceMs: 60_000,
      run: ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            resolve('stopped')
            throw new Error('bad listener')
          })
        }),
    })
    await Promise.resolve()
    run.abort()
    expect(await run.settled).toEqual({ type: 'returned', value: 'stopped' })
  })

  it('reports the late outcome of abandoned work', async () => {
    const { engine, clock } = setUp()
    let finish: (value: string) => void = () => undefined
    const onLate = vi.fn()
    const run = engine.start({ id: 'a', graceMs: 1, onLate, run: () => new Promise((resolve) => (finish = resolve)) })
    await Promise.resolve()
    run.abort()
    clock.advance(1)
    await run.settled
    finish('late')
    await new Promise((resolve) => setImmediate(resolve))
    expect(onLate).toHaveBeenCalledExactlyOnceWith({ type: 'returned', value: 'late' })
  })

  it('names the timer of a grace, and needs nobody who hears of late outcomes', async () => {
    const { engine, clock } = setUp()
    const setTimer = vi.spyOn(clock, 'setTimeout')
    let fail: (error: Error) => void = () => undefined
    const run = engine.start({ id: 'a', graceMs: 7, run: () => new Promise((_, reject) => (fail = reject)) })
    await Promise.resolve()
    run.abort()
    expect(setTimer.mock.calls).toEqual([[expect.any(Function), 7, { name: 'grace of a' }]])
    clock.advance(7)
    expect(await run.settled).toEqual({ type: 'abandoned' })
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    fail(new Error('late'))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('A2: reports an abort listener that throws, and calls the others', async () => {
    const { engine, onError } = setUp()
    const calls: string[] = []
    const run = engine.start({
      id: 'a',
      graceMs: 0,
      run: ({ signal }) => {
        signal.addEventListener('abort', () => {
          throw new Error('bad listener')
        })
        signal.addEventListener('abort', () => calls.push('second'))
        return never()
      },
    })
    await Promise.resolve()
    run.abort()
    expect(calls).toEqual(['second'])
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('bad listener'), expect.objectContaining({ id: 'a' }))
  })
})

describe('an isolated signal', () => {
  it('A2: behaves like any other signal, but reports exceptions of its listeners', () => {
    const controller = new AbortController()
    const { signal } = controller
    const errors: unknown[] = []
    const calls: string[] = []
    isolateAbortListeners(signal, (error) => errors.push(error))
    isolateAbortListeners(signal, () => errors.push('isolated twice'))
    const removed = () => calls.push('removed')
    signal.addEventListener('abort', removed)
    signal.removeEventListener('abort', removed)
    const twice = () => calls.push('once')
    signal.addEventListener('abort', twice)
    signal.addEventListener('abort', twice)
    signal.addEventListener('abort', { handleEvent: (event) => calls.push(`object ${event.type}`) })
    signal.onabort = () => calls.push('replaced')
    signal.onabort = () => {
      throw new Error('onabort')
    }
    expect(typeof signal.onabort).toBe('function')
    signal.addEventListener('abort', () => calls.push('kept'), { once: true })
    const derived = AbortSignal.any([signal])
    controller.abort('why')
    expect(calls).toEqual(['once', 'object abort', 'kept'])
    expect(errors).toEqual([new Error('onabort')])
    expect(derived.reason).toBe('why')
    signal.onabort = null
    expect(signal.onabort).toBeNull()
  })
})
