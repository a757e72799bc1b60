/** Finds the states of a machine that the same transitions leave, so that a drawing shows these transitions once. */
import type { AnyStateNode } from 'xstate'
import type { ChartTransition } from './charts.js'

/** States with the same parent that share at least one transition out of them, in the order of the machine. */
export type ExitGroup = readonly AnyStateNode[]

/** Where a line begins: at a state, or at all states of a group. */
export type LineSource = AnyStateNode | ExitGroup

export interface CommonExits {
  /** Returns the groups among the children of a state. Two groups have no state in common, or one of them contains the other. */
  groupsIn(parent: AnyStateNode): readonly ExitGroup[]
  sourceOf(transition: ChartTransition): LineSource
}

interface Exit {
  readonly states: ExitGroup
  readonly transitions: ChartTransition[]
}

export function findCommonExits(transitions: readonly ChartTransition[]): CommonExits {
  const exits = sharedExits(transitions)
  const groups: ExitGroup[] = []
  const sources = new Map<ChartTransition, ExitGroup>()
  // The group that saves most lines comes first. Groups that overlap in part cannot both be drawn, so the later one is skipped.
  for (const { states, transitions: shared } of exits.sort((one, other) => savedBy(other) - savedBy(one))) {
    if (!groups.every((group) => canBothBeDrawn(group, states))) continue
    groups.push(states)
    for (const transition of shared) sources.set(transition, states)
  }
  return {
    groupsIn: (parent) => groups.filter(([first]) => first?.parent === parent),
    sourceOf: (transition) => sources.get(transition) ?? transition.from,
  }
}

/** Whether all states of the first group are in the second. */
export function isWithin(inner: ExitGroup, outer: ExitGroup): boolean {
  return inner.every((state) => outer.includes(state))
}

/** Finds sets of two or more states that leave with the same event, guard and target. Returns each set with all such transitions. */
function sharedExits(transitions: readonly ChartTransition[]): Exit[] {
  const same = new Map<string, ChartTransition[]>()
  for (const transition of transitions) {
    const { from, event, guard = '', target } = transition
    if (target === undefined || from.parent === undefined) continue
    const key = [from.parent.id, event, guard, target.id].join(' ')
    same.set(key, [...(same.get(key) ?? []), transition])
  }
  const exits = new Map<string, Exit>()
  for (const shared of same.values()) {
    const states = [...new Set(shared.map(({ from }) => from))].sort((one, other) => one.order - other.order)
    const leavesAll = shared.every(
      ({ target }) => target !== undefined && !states.some((state) => contains(state, target)),
    )
    if (states.length < 2 || !leavesAll) continue
    const key = states.map(({ id }) => id).join(' ')
    const exit = exits.get(key) ?? { states, transitions: [] }
    exit.transitions.push(...shared)
    exits.set(key, exit)
  }
  return [...exits.values()]
}

function savedBy({ states, transitions }: Exit): number {
  return transitions.length - transitions.length / states.length
}

function canBothBeDrawn(one: ExitGroup, other: ExitGroup): boolean {
  return isWithin(one, other) || isWithin(other, one) || !one.some((state) => other.includes(state))
}

function contains(outer: AnyStateNode, state: AnyStateNode): boolean {
  return state === outer || (state.parent !== undefined && contains(outer, state.parent))
}
