/** What a host does when a signal or the end of its input tells it to end. Whole hosts: test/e2e/dispose-on-signals.test.ts. */
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgentTasks, disposeOnSignals } from 'agent-tasks'
import type { DisposeTarget } from '../../../src/engine/dispose-on-signals.js'
import { DisposedError } from '../../../src/errors.js'

/** In this process: exits are recorded, time is moved by hand, and the listeners are called as the signals would. */
async function stage() {
  // A disposal that never ends must not hold up the exit of the next test.
  vi.resetModules()
  const { disposeOnSignals } = await import('agent-tasks')
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  const said = vi.spyOn(console, 'error').mockReturnValue()
  onTestFinished(() => [exit, said].forEach((spy) => spy.mockRestore()))
  const before = new Set(process.listeners('SIGINT'))
  const uncaught = new Set(process.listeners('uncaughtException'))
  // Those of a disposal that never ends.
  onTestFinished(() => {
    for (const each of process.listeners('uncaughtException')) {
      if (!uncaught.has(each)) process.off('uncaughtException', each)
    }
  })
  return {
    exit,
    said,
    signal: (name: 'SIGINT' | 'SIGTERM') => {
      for (const listener of process.listeners(name)) if (!before.has(listener)) listener(name)
    },
    use: (target: DisposeTarget, options?: Parameters<typeof disposeOnSignals>[1]) => {
      const unsubscribe = disposeOnSignals(target, options)
      onTestFinished(unsubscribe)
      return unsubscribe
    },
    settle: () => vi.advanceTimersByTimeAsync(0),
  }
}

describe('disposeOnSignals', () => {
  it('F22: counts a signal that npm has passed on, besides the terminal, once', async () => {
    const { exit, signal, use, settle } = await stage()
    use(() => new Promise(() => undefined), { limitMs: Infinity })
    signal('SIGINT')
    vi.advanceTimersByTime(999)
    signal('SIGINT')
    await settle()
    expect(exit).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    signal('SIGINT')
    expect(exit).toHaveBeenCalledExactlyOnceWith(130)
  })

  it.each([
    { client: 'that closes the input and sends SIGTERM', steps: [0, 'end', 1, 'SIGTERM'] },
    { client: 'that sends SIGINT, then SIGTERM', steps: [0, 'SIGINT', 100, 'SIGTERM'] },
    { client: 'that sends SIGTERM late', steps: [0, 'SIGINT', 5000, 'SIGTERM'] },
    { client: 'that closes the input last', steps: [0, 'SIGTERM', 2000, 'end'] },
  ] as const)('F22: a client $client begins one disposal and forces nothing', async ({ steps }) => {
    const { exit, signal, use, settle } = await stage()
    const input = new PassThrough()
    const dispose = vi.fn(() => new Promise(() => undefined))
    use(dispose, { limitMs: Infinity, input })
    const [first, second] = [steps[1], steps[3]]
    const send = (name: typeof first | typeof second): unknown => (name === 'end' ? input.emit('end') : signal(name))
    send(first)
    vi.advanceTimersByTime(steps[2])
    send(second)
    await settle()
    expect(dispose).toHaveBeenCalledOnce()
    expect(exit).not.toHaveBeenCalled()
  })

  it('exits after the last of several disposals', async () => {
    const { exit, signal, use, settle } = await stage()
    let finish: () => void = () => undefined
    use(() => Promise.resolve())
    use({ [Symbol.asyncDispose]: () => new Promise<void>((resolve) => (finish = resolve)) }, { exitCode: 7 })
    const uncaught = process.listenerCount('uncaughtException')
    signal('SIGTERM')
    await settle()
    expect(exit).not.toHaveBeenCalled()
    expect(process.listenerCount('uncaughtException')).toBe(uncaught + 1)
    finish()
    await settle()
    expect(process.listenerCount('uncaughtException')).toBe(uncaught)
    expect(exit).toHaveBeenCalledExactlyOnceWith(7)
  })

  it('exits with 1 at its time limit', async () => {
    const { exit, signal, use } = await stage()
    use(() => new Promise(() => undefined), { limitMs: 50 })
    signal('SIGTERM')
    vi.advanceTimersByTime(49)
    expect(exit).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(exit).toHaveBeenCalledExactlyOnceWith(1)
  })

  it('does nothing any more after its unsubscribe function was called', async () => {
    const { signal, use } = await stage()
    const dispose = vi.fn()
    const input = new PassThrough()
    const listeners = () => [
      ...['SIGINT', 'SIGTERM', 'SIGHUP'].map((name) => process.listenerCount(name)),
      ...['end', 'close'].map((name) => input.listenerCount(name)),
    ]
    const before = listeners()
    const unsubscribe = use(dispose, { input })
    unsubscribe()
    signal('SIGINT')
    input.emit('end')
    input.emit('close')
    expect(dispose).not.toHaveBeenCalled()
    expect(listeners()).toEqual(before)
  })

  it.each([
    [
      () => disposeOnSignals(undefined as never),
      'target: got undefined, expected an object with [Symbol.asyncDispose]',
    ],
    [() => disposeOnSignals({ dispose: () => undefined } as never), 'target: got {}'],
    [() => disposeOnSignals(() => undefined, { limitMs: Number.NaN }), 'Setting limitMs: got NaN'],
    [() => disposeOnSignals(() => undefined, { limitMs: -1 }), 'Setting limitMs: got -1'],
  ])('refuses an invalid argument', (call, problem) => {
    const before = process.listenerCount('SIGINT')
    expect(call).toThrow(problem)
    expect(process.listenerCount('SIGINT')).toBe(before)
  })

  it('takes what createAgentTasks returns', async () => {
    const { exit, signal, use, settle } = await stage()
    const tasks = createAgentTasks()
    use(tasks)
    signal('SIGINT')
    await settle()
    expect(() => tasks.getAsyncTaskManager().launch({ subagentName: 'a', goalPrompt: 'b' }, () => ({}))).toThrow()
    expect(exit).toHaveBeenCalledExactlyOnceWith(130)
  })

  it('prints why a disposal failed, and exits with 1', async () => {
    const { exit, said, signal, use, settle } = await stage()
    const error = new Error('stuck')
    use(() => {
      throw error
    })
    signal('SIGTERM')
    await settle()
    expect(said).toHaveBeenCalledExactlyOnceWith(error)
    expect(exit).toHaveBeenCalledExactlyOnceWith(1)
  })
})

describe('an uncaught error during a disposal', () => {
  /** Begins a disposal, in a process in which this package alone listens for uncaught errors, or also its host. */
  async function disposing(listeners: number) {
    const staged = await stage()
    const count = vi.spyOn(process, 'listenerCount').mockReturnValue(listeners)
    onTestFinished(() => count.mockRestore())
    const before = new Set(process.listeners('uncaughtException'))
    let finish: () => void = () => undefined
    staged.use(() => new Promise<void>((resolve) => (finish = resolve)))
    staged.signal('SIGTERM')
    const [listener] = process.listeners('uncaughtException').filter((each) => !before.has(each))
    const end = async () => {
      finish()
      await staged.settle()
    }
    return { ...staged, end, uncaught: (error: unknown) => listener?.(error as Error, 'unhandledRejection') }
  }

  it.each([
    [Object.assign(new Error('a was cancelled'), { code: 'TASK_CANCELLED' })],
    [new Error('it failed', { cause: new Error('it too', { cause: new DisposedError() }) })],
  ])('is ignored when the disposal is its cause', async (error) => {
    const { exit, said, end, uncaught } = await disposing(1)
    uncaught(error)
    await end()
    expect(said).not.toHaveBeenCalled()
    expect(exit).toHaveBeenCalledExactlyOnceWith(143)
  })

  it.each([[new Error('mine')], ['a string']])('is printed otherwise, and the exit code is 1', async (error) => {
    const { exit, said, end, uncaught } = await disposing(1)
    uncaught(error)
    expect(said).toHaveBeenCalledExactlyOnceWith(error)
    expect(exit).not.toHaveBeenCalled()
    await end()
    expect(exit).toHaveBeenCalledExactlyOnceWith(1)
  })

  it('is left to a listener of the host', async () => {
    const { exit, said, end, uncaught } = await disposing(2)
    uncaught(new Error('mine'))
    await end()
    expect(said).not.toHaveBeenCalled()
    expect(exit).toHaveBeenCalledExactlyOnceWith(143)
  })
})

it('outside Node it checks its arguments, and listens for nothing', async () => {
  vi.resetModules()
  vi.doMock('../../../src/system/node-builtins.js', async (load) => ({ ...(await load<object>()), isNode: false }))
  onTestFinished(() => vi.doUnmock('../../../src/system/node-builtins.js'))
  const outside = await import('../../../src/engine/dispose-on-signals.js')
  const before = process.listenerCount('SIGTERM')
  expect(() => outside.disposeOnSignals(undefined as never)).toThrow('target: got undefined')
  const unsubscribe = outside.disposeOnSignals(() => undefined)
  expect(process.listenerCount('SIGTERM')).toBe(before)
  expect(unsubscribe).not.toThrow()
})
