/** The option `inspect`: who receives XState's inspection events. */
import type { InspectionEvent, Observer } from 'xstate'
import { InvalidInputError } from '../errors.js'

/**
 * Receives XState's inspection events in order, each after the transition that it belongs to: a function, or an observer such as
 * `createInspector` of `agent-tasks/inspect` returns. What it throws is reported to `onError`.
 */
export type Inspect = ((event: InspectionEvent) => void) | Pick<Observer<InspectionEvent>, 'next'>

/**
 * The option as a function; undefined without the option, so that the actors are created without an inspector.
 * @throws InvalidInputError for a value that is neither a function nor an observer
 */
export function toInspectFunction(inspect: Inspect | undefined): ((event: InspectionEvent) => unknown) | undefined {
  if (inspect === undefined || typeof inspect === 'function') return inspect
  // Callers without types may pass anything.
  const { next } = (inspect as { next?: unknown } | null) ?? {}
  if (typeof next !== 'function') {
    throw new InvalidInputError('options.inspect', inspect, 'a function, or an observer with a method next')
  }
  return (event) => inspect.next?.(event)
}
