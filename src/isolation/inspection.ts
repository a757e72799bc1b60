/** The option `inspect`, which receives XState's inspection events. */
import type { InspectionEvent, Observer } from 'xstate'
import { callContext } from './call-context.js'

/**
 * Receives XState's inspection events in order, each after its transition. It is a function, or an observer such as the one that `createInspector` of
 * `agent-tasks/inspect` returns. If it throws, the exception is passed to `onError`.
 */
export type Inspect = ((event: InspectionEvent) => void) | Pick<Observer<InspectionEvent>, 'next'>

/** Converts the option to a function, which calls the host in the current context. Returns undefined if the option is not set; actors are then created without an inspector. */
export function toInspectFunction(inspect: Inspect | undefined): ((event: InspectionEvent) => unknown) | undefined {
  if (inspect === undefined) return undefined
  const context = callContext()
  if (typeof inspect === 'function') return (event) => context.runInAsyncScope((): unknown => inspect(event))
  return (event) => context.runInAsyncScope((): unknown => inspect.next?.(event))
}
