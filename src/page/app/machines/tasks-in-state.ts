/** Finds the tasks in a state of their machine. */
import type { PageTask } from '../../wire.js'
import { isIn, pathOf } from '../chart-counts.js'
import type { MachineChart } from '../chart.js'
import { kindOfMachine, machineState } from '../task-path.js'
import { STATES } from '../text/states.js'

/**
 * Returns the tasks in a state, in the given order. If the machine does not describe tasks, there are none.
 * @param path the path of the state in the chart. Tasks in states nested inside it are included
 */
export function tasksInState(chart: MachineChart, path: string, tasks: readonly PageTask[]): readonly PageTask[] {
  const kind = kindOfMachine(chart.id)
  const states = new Set(STATES.filter((state) => isIn(pathOf(chart, machineState(state)), path)))
  return tasks.filter((task) => task.kind === kind && states.has(task.state))
}
