/** The option `inspect`, which receives XState's inspection events. */
import type { InspectionEvent, Observer } from 'xstate'
import { InvalidInputError } from '../errors.js'

/**
 * Receives XState's inspection events in order, each after its transition. It is a function, or an observer such as the one that `createInspector` of
 * `agent-tasks/inspect` returns. If it throws, the exception is passed to `onError`.
 */
export type Inspect = ((event: InspectionEvent) => void) | Pick<Observer<InspectionEvent>, 'next'>

/**
 * Converts the option to a function. Returns undefined if the option is not set; actors are then created without an inspector.
 * @throws InvalidInputError for a value that is neither a function nor an observer
 */
export function toInspectFunction(inspect: Inspect | undefined): ((event: InspectionEvent) => unknown) | undefined {
  if (inspect === undefined || typeof inspect === 'function') return inspect
  // JavaScript callers may pass any value.
  const { next } = (inspect as { next?: unknown } | null) ?? {}
  if (typeof next !== 'function') {
    throw new InvalidInputError('options.inspect', inspect, 'a function, or an observer with a method next')
  }
  return (event) => inspect.next?.(event)
}
