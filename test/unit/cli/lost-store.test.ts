import { expect, it, vi } from 'vitest'
import { exitWhenLost } from '../../../src/cli/lost-store.js'
import { waitFor } from '../../support/wait-for.js'

it('a server whose store is lost says why, closes, and exits with 1', async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never)
  const error = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const { exitCode } = process
  vi.useFakeTimers()
  try {
    const lost = new AbortController()
    let closed = (): void => undefined
    const close = vi.fn(() => new Promise<void>((resolve) => (closed = resolve)))
    exitWhenLost({ lost: lost.signal }, close)
    exitWhenLost({ lost: undefined }, close)
    expect(close).not.toHaveBeenCalled()
    lost.abort(new Error('another owner has taken over'))
    expect(close).toHaveBeenCalledTimes(1)
    expect(error).toHaveBeenCalledWith('agent-tasks error: another owner has taken over')
    expect(exit).not.toHaveBeenCalled()
    closed()
    await waitFor(() => expect(exit).toHaveBeenCalledWith())
    expect(process.exitCode).toBe(1)
    exit.mockClear()
    // Closing that hangs does not keep it.
    await vi.advanceTimersByTimeAsync(10_000)
    expect(exit).toHaveBeenCalledWith()
  } finally {
    process.exitCode = exitCode
    vi.useRealTimers()
    vi.restoreAllMocks()
  }
})
