/** Ends the lookup of a subagent, which may hang, when the call is aborted, the deadline of the task passes, or the manager is disposed. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { whenAborted } from '../system/abort.js'
import { clearLongTimeout, setLongTimeout } from '../system/clock.js'
import { DisposedError } from '../errors.js'

export interface LookupLimits {
  readonly manager: AsyncTaskManager
  /** The deadline of the task, in ms; absent without a deadline. If the lookup takes longer, the task is overdue before it starts. */
  readonly timeoutMs?: number
  readonly signal: AbortSignal | undefined
}

/** Calls `lookUp` with a signal. The signal aborts when one of the limits is reached. */
export async function withLookupLimits<T>(
  limits: LookupLimits,
  lookUp: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { manager, timeoutMs = Infinity, signal } = limits
  const { clock, notifications$ } = manager.reads
  const controller = new AbortController()
  const stopListening = whenAborted(signal, () => controller.abort(signal?.reason))
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
    stopListening()
  }
}
