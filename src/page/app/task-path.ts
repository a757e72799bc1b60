/** The states of its machine that a task has entered. */
import type { PageTaskKind, PageTaskState, TaskEvent } from '../wire.js'
import { isIn, pathOf } from './chart-counts.js'
import type { ChartEdge, MachineChart } from './chart.js'

/** The path of a task through its machine. */
export interface TaskPath {
  readonly machine: string
  readonly state: string
  /** The entered states in order, including the current one. A state that was entered again is repeated. */
  readonly visited: readonly string[]
  /** Whether earlier states are missing, because their events are no longer kept. */
  readonly isCut: boolean
}

const machines: Readonly<Record<PageTaskKind, string>> = { async: 'asyncTask', command: 'commandTask' }

/**
 * @param task its kind and current state
 * @param events its known events, oldest first
 */
export function taskPath(
  task: { readonly kind: PageTaskKind; readonly state: PageTaskState },
  events: readonly TaskEvent[],
): TaskPath {
  const state = machineState(task.state)
  const visited: string[] = []
  for (const entered of [...events.map((event) => machineState(event.state)), state]) {
    if (visited.at(-1) !== entered) visited.push(entered)
  }
  const first = visited[0]
  return { machine: machines[task.kind], state, visited, isCut: first !== 'queued' && first !== 'running' }
}

/** The path in words: `queued → running → completed`. */
export function pathText({ visited, isCut }: TaskPath): string {
  return [...(isCut ? ['…'] : []), ...visited].join(' → ')
}

/** The same path, in which each state is a path in the chart. */
export function onChart(chart: MachineChart, path: TaskPath): TaskPath {
  const find = (state: string): string => pathOf(chart, state)
  return { ...path, state: find(path.state), visited: path.visited.map(find) }
}

/**
 * Returns the lines that the task has taken.
 * @param path as {@link onChart} returns it
 */
export function takenEdges({ visited }: TaskPath, edges: readonly ChartEdge[]): ReadonlySet<ChartEdge> {
  const taken = new Set<ChartEdge>()
  visited.slice(1).forEach((to, index) => {
    const state = visited[index] ?? ''
    // Of nested states, the innermost one handles an event.
    const [edge] = edges
      .filter((line) => line.to === to)
      .flatMap((line) => line.from.filter((from) => isIn(state, from)).map((from) => ({ line, from })))
      .sort((one, other) => other.from.length - one.from.length)
    if (edge !== undefined) taken.add(edge.line)
  })
  return taken
}

/** The kind of task that a machine describes; undefined for other machines. */
export function kindOfMachine(id: string): PageTaskKind | undefined {
  return (Object.keys(machines) as PageTaskKind[]).find((kind) => machines[kind] === id)
}

/** The name of a state in the machine, where a task that has timed out is `failed`. */
export function machineState(state: PageTaskState): string {
  return state === 'timed-out' ? 'failed' : state
}
