/** How many actors are in each state of a machine. */
import type { MachineCounts } from '../wire.js'
import type { ChartNode, MachineChart } from './chart.js'

/** The states themselves, without the marks. */
export function statesOf({ states }: MachineChart): readonly ChartNode[] {
  return states.filter(isState)
}

/** Whether it is a state, and no mark. */
export function isState({ kind }: ChartNode): boolean {
  return kind !== 'start' && kind !== 'any' && kind !== 'group'
}

/** The path of a state in a chart. The page names the states of tasks without the states around them. */
export function pathOf(chart: MachineChart, state: string): string {
  const states = statesOf(chart)
  const isKnown = states.some(({ path }) => path === state)
  return isKnown ? state : (states.find(({ name }) => name === state)?.path ?? state)
}

/** Whether a state is the state with the path, or inside it. */
export function isIn(state: string, path: string): boolean {
  return state === path || state.startsWith(`${path}.`)
}

/** By path of a state; those in a state count in the states around it, too. */
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

/** In words, for screen readers. */
export function summaryOf(chart: MachineChart, counts: ReadonlyMap<string, number>): string {
  const live = statesOf(chart).flatMap(({ kind, path }) => {
    const count = counts.get(path) ?? 0
    return kind === 'compound' || count === 0 ? [] : [`${count} ${path}`]
  })
  return live.length === 0 ? 'none' : live.join(', ')
}
