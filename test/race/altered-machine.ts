/** Changes to the delivery machine that `provide` cannot make: transitions removed, or with another target. */
import { createMachine } from 'xstate'
import { deliveryMachine, type DeliveryMachine } from '../../machines/delivery.js'

/** The part of a state's configuration that can be altered. */
export interface AlterableState {
  on: Record<string, unknown>
  after: Record<string, unknown>
  states: Record<string, AlterableState>
}

/** The delivery machine with an altered configuration and the original implementations. */
export function alterMachine(alter: (machine: AlterableState) => void): DeliveryMachine {
  const config = copy(deliveryMachine.config) as AlterableState
  alter(config)
  // The type of a machine is inferred from its configuration, which is no longer the original one.
  return createMachine(config as never, deliveryMachine.implementations as never) as unknown as DeliveryMachine
}

/** The nested state at a path. @throws if there is none: the alteration is out of date */
export function stateAt(machine: AlterableState, ...path: string[]): AlterableState {
  return path.reduce((state, name) => {
    const nested = (state.states as Partial<typeof state.states>)[name]
    if (nested === undefined) throw new Error(`the delivery machine has no state ${path.join('.')}`)
    return nested
  }, machine)
}

/** Removes an entry. @throws if it is not there: the alteration is out of date */
export function remove(entries: Record<string, unknown>, name: string): void {
  if (!Reflect.has(entries, name)) throw new Error(`the delivery machine has no ${name} there`)
  Reflect.deleteProperty(entries, name)
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, nested]) => [key, copy(nested)]))
}
