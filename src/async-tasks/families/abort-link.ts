/** Links the `AbortController` of a task to its cancellation (promise A8). */
import { PerTask } from '../../../machines/per-task.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { OnError } from '../../callbacks/error-report.js'
import { callIsolated } from '../../callbacks/isolated-call.js'
import { IsolatedController } from '../../callbacks/isolated-controller.js'
import { reasonOfAbort } from '../cancel-reason.js'
import type { Feature } from '../feature.js'

export interface AbortHost {
  cancel(entry: TaskEntry, reason?: string): unknown
  readonly report: OnError
}

export interface AbortLink {
  /** Called when the task is registered: an abort now cancels it. */
  link(entry: TaskEntry): void
  /** Called when the task was not registered. */
  stop(): void
}

/** The function that removes the listener of a task's controller. */
const links = new PerTask<() => void>()

const unlink = (entry: TaskEntry): void => links.take(entry)?.()

/** Once a task has ended or its run was aborted, its controller no longer cancels it. */
export const abortLinks = () => ({ abort: unlink, ended: unlink }) satisfies Feature

/** Listens to the controller of a task that is about to be registered. Exceptions of the signal are thrown here, before any change. */
export function listen(host: AbortHost, controller: AbortController): AbortLink {
  const own = controller instanceof IsolatedController ? controller : undefined
  let linked: TaskEntry | undefined
  let isAborted = own?.aborted ?? controller.signal.aborted
  const onAbort = (): void => {
    isAborted = true
    if (linked !== undefined) host.cancel(linked, reasonOfAbort(controller.signal))
  }
  const stop = own === undefined ? listenTo(host, controller.signal, onAbort) : own.listen(onAbort)
  return {
    stop,
    link: (entry) => {
      linked = entry
      links.set(entry, stop)
      if (isAborted) host.cancel(entry, reasonOfAbort(controller.signal))
    },
  }
}

/** @returns a function that stops listening */
function listenTo(host: AbortHost, signal: AbortSignal, onAbort: () => void): () => void {
  signal.addEventListener('abort', onAbort, { once: true })
  return () =>
    callIsolated(
      () => signal.removeEventListener('abort', onAbort),
      (error) => host.report(error, { source: 'abort-listener' }),
    )
}
