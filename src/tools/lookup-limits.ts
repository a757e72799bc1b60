/** Limits the lookup of a subagent, which may hang: by the abort of the call, its deadline, and the disposal of the manager. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { DisposedError } from '../errors.js'

export interface LookupLimits {
  readonly manager: AsyncTaskManager
  /** The deadline of the task, in ms; absent without one. A task that has not started by then would be overdue. */
  readonly timeoutMs?: number
  /** The signal of the call. */
  readonly signal: AbortSignal | undefined
}

/** Calls `lookUp` with a signal that aborts when one of the limits is reached. */
export async function withLookupLimits<T>(
  limits: LookupLimits,
  lookUp: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { manager, timeoutMs = Infinity, signal } = limits
  const { clock, notifications$ } = manager.reads
  const controller = new AbortController()
  const onAbort = (): void => controller.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  const timeout = setLongTimeout(
    clock,
    () => controller.abort(new Error(`The lookup of the subagent did not end within ${timeoutMs / 1000} s.`)),
    timeoutMs,
    { name: 'time limit of the lookup of a subagent', kind: 'deadline' },
  )
  const disposal = notifications$.subscribe({ complete: () => controller.abort(new DisposedError()) })
  try {
    return await lookUp(controller.signal)
  } finally {
    disposal.unsubscribe()
    clearLongTimeout(clock, timeout)
    signal?.removeEventListener('abort', onAbort)
  }
}
