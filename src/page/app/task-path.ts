/** The states of the state machine that a task has been in. */
import type { PageTaskKind, PageTaskState, TaskEvent } from '../wire.js'
import { isIn, pathOf } from './chart-counts.js'
import type { ChartEdge, MachineChart } from './chart.js'

export interface TaskPath {
  readonly machine: string
  readonly state: string
  /** The states in the order in which the task entered them, with the current state last. A state that was entered twice is listed twice. */
  readonly visited: readonly string[]
  /** Whether earlier states are missing, because the server no longer keeps their events. */
  readonly isCut: boolean
}

const machines: Readonly<Record<PageTaskKind, string>> = { async: 'asyncTask', command: 'commandTask' }

/**
 * @param task the kind and the current state of the task
 * @param events the known events of the task, oldest first
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

/** Formats a path, such as `queued → running → completed`. */
export function pathText({ visited, isCut }: TaskPath): string {
  return [...(isCut ? ['…'] : []), ...visited].join(' → ')
}

/** Replaces the names of the states in a task's path by the dotted names that the chart uses. */
export function onChart(chart: MachineChart, path: TaskPath): TaskPath {
  const find = (state: string): string => pathOf(chart, state)
  return { ...path, state: find(path.state), visited: path.visited.map(find) }
}

/**
 * Returns the lines of the chart that the task has followed.
 * @param path a path that `onChart` has returned
 */
export function takenEdges({ visited }: TaskPath, edges: readonly ChartEdge[]): ReadonlySet<ChartEdge> {
  const taken = new Set<ChartEdge>()
  visited.slice(1).forEach((to, index) => {
    const state = visited[index] ?? ''
    // If several lines start at nested states, the line from the innermost state handled the event.
    const [edge] = edges
      .filter((line) => line.to === to)
      .flatMap((line) => line.from.filter((from) => isIn(state, from)).map((from) => ({ line, from })))
      .sort((one, other) => other.from.length - one.from.length)
    if (edge !== undefined) taken.add(edge.line)
  })
  return taken
}

/** Returns the kind of task that a machine describes; undefined if the machine does not describe tasks. */
export function kindOfMachine(id: string): PageTaskKind | undefined {
  return (Object.keys(machines) as PageTaskKind[]).find((kind) => machines[kind] === id)
}

/** Returns the name of a task's state in its machine. The machine has no state `timed-out`: a task that timed out is `failed`. */
export function machineState(state: PageTaskState): string {
  return state === 'timed-out' ? 'failed' : state
}
