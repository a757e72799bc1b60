/** What a chart needs from its host throws, by name, when the host does not provide it: nothing is left out in silence. */
import { describe, expect, it } from 'vitest'
import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { createActor } from 'xstate'
import { asyncTaskMachine } from '../../../machines/async-task.js'
import { deliveryMachine } from '../../../machines/delivery.js'

type Implementation = (...args: unknown[]) => unknown

const placeholders: readonly [AnyStateMachine, 'actions' | 'guards', names: readonly string[]][] = [
  [asyncTaskMachine, 'actions', ['requestAbort']],
  [deliveryMachine, 'actions', ['reportExpiry']],
  [deliveryMachine, 'guards', ['isNothingOwed', 'isAgentIdle']],
]

const cases = placeholders.flatMap(([machine, kind, names]) =>
  names.map((name) => ({
    chart: machine.id,
    name,
    implementation: machine.implementations[kind][name] as Implementation,
  })),
)

describe('what a host must provide', () => {
  it.each(cases)('$chart: $name throws until it does', ({ name, implementation }) => {
    expect(() => implementation({}, {})).toThrow(name)
  })

  it('delivery: the actor deliver ends with an error until it does', () => {
    const { deliver } = deliveryMachine.implementations.actors
    const actor = createActor(deliver as AnyActorLogic)
    const errors: unknown[] = []
    actor.subscribe({ error: (error) => errors.push(error) })
    actor.start()
    expect(errors).toEqual([new Error('delivery: the host must provide the actor deliver')])
  })
})
