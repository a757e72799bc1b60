/** Which states of its machine a task has been in. */
import type { PageTaskKind, PageTaskState, TaskEvent } from '../wire.js'
import type { ChartEdge } from './chart.js'

/** A task's way through its machine. */
export interface TaskPath {
  /** The id of the machine. */
  readonly machine: string
  /** The state that it is in. */
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

/** Whether the task has gone along a line. */
export function isVisited({ visited }: TaskPath, { from, to }: ChartEdge): boolean {
  return from !== undefined && visited.some((state, index) => state === from && visited[index + 1] === to)
}

/** A task that has timed out has failed, as its machine has it. */
function machineState(state: PageTaskState): string {
  return state === 'timed-out' ? 'failed' : state
}
