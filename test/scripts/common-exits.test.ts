import { expect, it } from 'vitest'
import { createMachine, type AnyStateMachine } from 'xstate'
import { findCommonExits } from '../../scripts/common-exits.js'
import { transitionsOf } from '../../scripts/charts.js'

/** A machine with a state for each entry, and the targets of its events. */
function machineOf(states: Readonly<Record<string, Readonly<Record<string, string>>>>): AnyStateMachine {
  return createMachine({
    initial: Object.keys(states)[0]!,
    states: Object.fromEntries(Object.entries(states).map(([name, on]) => [name, { on }])),
  } as never)
}

/** The groups, and each transition with its source. */
function found(machine: AnyStateMachine) {
  const transitions = transitionsOf(machine)
  const exits = findCommonExits(transitions)
  const sources = transitions.map((transition) => {
    const source = exits.sourceOf(transition)
    return `${'id' in source ? source.key : source.map(({ key }) => key).join('+')} ${transition.event}`
  })
  return {
    groups: exits.groupsIn(machine.root).map((group) => group.map(({ key }) => key).join('+')),
    sources: [...new Set(sources)],
  }
}

it('groups states that share an exit, one group inside another', () => {
  const machine = machineOf({
    a: { stop: 'end', pause: 'rest', own: 'b' },
    b: { stop: 'end', pause: 'rest' },
    c: { stop: 'end' },
    rest: {},
    end: {},
  })
  expect(found(machine)).toEqual({ groups: ['a+b+c', 'a+b'], sources: ['a+b+c stop', 'a+b pause', 'a own'] })
})

it('draws what saves the most lines where groups would overlap in part', () => {
  const machine = machineOf({
    a: { x: 'end' },
    b: { x: 'end', y: 'end', z: 'end' },
    c: { y: 'end', z: 'end' },
    end: {},
  })
  expect(found(machine)).toEqual({ groups: ['b+c'], sources: ['a x', 'b x', 'b+c y', 'b+c z'] })
})

it('does not group states for an event that leads into one of them, nor for one with another target', () => {
  const machine = machineOf({ a: { x: 'b', y: 'c' }, b: { x: 'b', y: 'd' }, c: {}, d: {} })
  expect(found(machine).groups).toEqual([])
})
