/** Which tasks are in a state of their machine. */
import type { PageTask } from '../../wire.js'
import { isIn, pathOf } from '../chart-counts.js'
import type { MachineChart } from '../chart.js'
import { kindOfMachine, machineState } from '../task-path.js'
import { STATES } from '../text/states.js'

/**
 * In the order of the tasks.
 * @param path of a state, or of a state around others, in the chart of a machine of tasks; those of other machines have no tasks
 */
export function tasksInState(chart: MachineChart, path: string, tasks: readonly PageTask[]): readonly PageTask[] {
  const kind = kindOfMachine(chart.id)
  const states = new Set(STATES.filter((state) => isIn(pathOf(chart, machineState(state)), path)))
  return tasks.filter((task) => task.kind === kind && states.has(task.state))
}
