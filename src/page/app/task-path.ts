/** Which states of its machine a task has been in. */
import type { PageTaskKind, PageTaskState, TaskEvent } from '../wire.js'
import { isIn, pathOf } from './chart-counts.js'
import type { ChartEdge, MachineChart } from './chart.js'

/** A task's way through its machine. */
export interface TaskPath {
  readonly machine: string
  readonly state: string
  /** The states in order, with the present one; a state that was entered again is there again. */
  readonly visited: readonly string[]
  /** Whether earlier states are missing, because their events are no longer kept. */
  readonly isCut: boolean
}

const machines: Readonly<Record<PageTaskKind, string>> = { async: 'asyncTask', command: 'commandTask' }

/**
 * @param task its kind and its present state
 * @param events its events as they are kept, oldest first
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

/** The way in words: `queued → running → completed`. */
export function pathText({ visited, isCut }: TaskPath): string {
  return [...(isCut ? ['…'] : []), ...visited].join(' → ')
}

/** The same way, with the paths that the states have in a chart. */
export function onChart(chart: MachineChart, path: TaskPath): TaskPath {
  const find = (state: string): string => pathOf(chart, state)
  return { ...path, state: find(path.state), visited: path.visited.map(find) }
}

/**
 * The lines that the task has gone along.
 * @param path with the paths of states, as {@link onChart} returns it
 */
export function takenEdges({ visited }: TaskPath, edges: readonly ChartEdge[]): ReadonlySet<ChartEdge> {
  const taken = new Set<ChartEdge>()
  visited.slice(1).forEach((to, index) => {
    const state = visited[index] ?? ''
    // Of several states around each other, the innermost handles an event.
    const [edge] = edges
      .filter((line) => line.to === to)
      .flatMap((line) => line.from.filter((from) => isIn(state, from)).map((from) => ({ line, from })))
      .sort((one, other) => other.from.length - one.from.length)
    if (edge !== undefined) taken.add(edge.line)
  })
  return taken
}

/** The kind of the tasks that a machine is for; undefined for a machine of something else. */
export function kindOfMachine(id: string): PageTaskKind | undefined {
  return (Object.keys(machines) as PageTaskKind[]).find((kind) => machines[kind] === id)
}

/** The name of the state in the machine, which has `failed` for a task that has timed out. */
export function machineState(state: PageTaskState): string {
  return state === 'timed-out' ? 'failed' : state
}
