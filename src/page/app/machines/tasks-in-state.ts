/** Finds the tasks in a state of their machine. */
import type { PageTask } from '../../wire.js'
import { isIn, pathOf } from '../chart-counts.js'
import type { MachineChart } from '../chart.js'
import { kindOfMachine, machineState } from '../task-path.js'
import { STATES } from '../text/states.js'

/**
 * Keeps the order of the tasks. A state of a machine that does not describe tasks has none.
 * @param path the path of the state in the chart; it may contain further states
 */
export function tasksInState(chart: MachineChart, path: string, tasks: readonly PageTask[]): readonly PageTask[] {
  const kind = kindOfMachine(chart.id)
  const states = new Set(STATES.filter((state) => isIn(pathOf(chart, machineState(state)), path)))
  return tasks.filter((task) => task.kind === kind && states.has(task.state))
}
