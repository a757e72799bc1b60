/** Counts the actors in each state of a machine. */
import type { MachineCounts } from '../wire.js'
import type { ChartNode, MachineChart } from './chart.js'

export function statesOf({ states }: MachineChart): readonly ChartNode[] {
  return states.filter(isState)
}

/** Whether a node is a state. Other nodes are the dot at the initial state, the box for all states, and the frame of a group. */
export function isState({ kind }: ChartNode): boolean {
  return kind !== 'start' && kind !== 'any' && kind !== 'group'
}

/** Returns the path of a state. The state may be given by its name alone, such as `stopping`. */
export function pathOf(chart: MachineChart, state: string): string {
  const states = statesOf(chart)
  const isKnown = states.some(({ path }) => path === state)
  return isKnown ? state : (states.find(({ name }) => name === state)?.path ?? state)
}

/** Whether a state is the state with this path, or is nested inside it. */
export function isIn(state: string, path: string): boolean {
  return state === path || state.startsWith(`${path}.`)
}

/** Returns the counts by path. An actor counts in its own state and in each state that contains that state. */
export function countStates(chart: MachineChart, counts: MachineCounts): ReadonlyMap<string, number> {
  const counted = Object.entries(counts[chart.id] ?? {}).map(([state, count]) => ({
    state: pathOf(chart, state),
    count,
  }))
  return new Map(
    statesOf(chart).map(({ path }) => [
      path,
      counted.reduce((sum, { state, count }) => (isIn(state, path) ? sum + count : sum), 0),
    ]),
  )
}

export function summaryOf(chart: MachineChart, counts: ReadonlyMap<string, number>): string {
  const live = statesOf(chart).flatMap(({ kind, path }) => {
    const count = counts.get(path) ?? 0
    return kind === 'compound' || count === 0 ? [] : [`${count} ${path}`]
  })
  return live.length === 0 ? 'none' : live.join(', ')
}
