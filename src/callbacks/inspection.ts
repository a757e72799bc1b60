/** The option `inspect`, which receives XState's inspection events. */
import type { InspectionEvent, Observer } from 'xstate'
import { InvalidInputError } from '../errors.js'

/**
 * Receives XState's inspection events in order, each after its transition. Either a function, or an observer such as the one that `createInspector`
 * of `agent-tasks/inspect` returns. Its exceptions are reported to `onError`.
 */
export type Inspect = ((event: InspectionEvent) => void) | Pick<Observer<InspectionEvent>, 'next'>

/**
 * Returns the option as a function, or undefined if it was not given. Actors are then created without an inspector.
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
