/** Changes to the delivery chart that `provide` cannot make: transitions taken away or led elsewhere. */
import { createMachine } from 'xstate'
import { deliveryMachine, type DeliveryMachine } from '../../machines/delivery.js'

/** The part of a state's configuration that the alterations touch; a transition is a target, or a whole description. */
export interface AlterableState {
  on: Record<string, unknown>
  after: Record<string, unknown>
  states: Record<string, AlterableState>
}

/** The delivery chart with its configuration altered; everything else is the original's. */
export function alterChart(alter: (chart: AlterableState) => void): DeliveryMachine {
  const config = copy(deliveryMachine.config) as AlterableState
  alter(config)
  // The types of a chart follow from its configuration, which has just ceased to be the original's.
  return createMachine(config as never, deliveryMachine.implementations as never) as unknown as DeliveryMachine
}

/** The nested state of that path. @throws if the chart has none: then the alteration is out of date */
export function stateAt(chart: AlterableState, ...path: string[]): AlterableState {
  return path.reduce((state, name) => {
    const nested = (state.states as Partial<typeof state.states>)[name]
    if (nested === undefined) throw new Error(`the delivery chart has no state ${path.join('.')}`)
    return nested
  }, chart)
}

/** Takes an entry away. @throws if it is not there: then the alteration is out of date */
export function takeAway(entries: Record<string, unknown>, name: string): void {
  if (!Reflect.has(entries, name)) throw new Error(`the delivery chart has no ${name} there`)
  Reflect.deleteProperty(entries, name)
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, nested]) => [key, copy(nested)]))
}
