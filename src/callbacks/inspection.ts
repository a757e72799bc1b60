/** What may see the actors at work, and how each place that makes actors tells it: after the change, never from inside one. */
import type { InspectionEvent, Observer } from 'xstate'
import { InvalidInputError } from '../errors.js'

/**
 * Sees XState's inspection events of the actors, in order, each after the change that it belongs to: a function, or an observer
 * such as `createInspector` of `agent-tasks/inspect` makes. What it throws is reported and changes nothing.
 */
export type Inspect = ((event: InspectionEvent) => void) | Pick<Observer<InspectionEvent>, 'next'>

/**
 * The option as one function. Without the option there is none, and the actors are made without an inspector.
 * @throws InvalidInputError for what is neither a function nor an observer
 */
export function toInspectFunction(inspect: Inspect | undefined): ((event: InspectionEvent) => unknown) | undefined {
  if (inspect === undefined || typeof inspect === 'function') return inspect
  // An observer of plain JavaScript may be anything.
  const { next } = (inspect as { next?: unknown } | null) ?? {}
  if (typeof next !== 'function') {
    throw new InvalidInputError('options.inspect', inspect, 'a function, or an observer with a method next')
  }
  return (event) => inspect.next?.(event)
}
