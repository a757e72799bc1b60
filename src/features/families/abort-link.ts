/** Cancels a task when the `AbortController` with which it was registered aborts (promise A8). */
import { TaskData } from '../../../machines/task-data.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { OnError } from '../../isolation/error-report.js'
import { callIsolated } from '../../isolation/isolated-call.js'
import { IsolatedController } from '../../isolation/isolated-controller.js'
import { reasonOfAbort } from '../../async-tasks/cancel-reason.js'
import type { Feature } from '../../async-tasks/feature.js'

export interface AbortHost {
  cancel(entry: TaskEntry, reason?: string): unknown
  readonly report: OnError
}

export interface AbortLink {
  /** Called when the task is registered. From now on, an abort cancels it. */
  link(entry: TaskEntry): void
  /** Called when the registration was refused. */
  stop(): void
}

/** For each task, the function that removes the listener from its controller. */
const links = new TaskData<() => void>()

const unlink = (entry: TaskEntry): void => links.take(entry)?.()

/** An abort of the controller has no effect after the task has ended or its run was aborted. */
export const abortLinks = () => ({ abort: unlink, ended: unlink, suspended: unlink }) satisfies Feature

/** Listens to the controller of a task before it is registered. If the signal throws, it does so here, before anything has changed. */
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
