/** The signal that asks a run to conclude, because a budget of its task is exceeded (promise F10). */
import { TaskData } from '../../../machines/task-data.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { IsolatedController } from '../../isolation/isolated-controller.js'
import type { Feature } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { runs } from '../../async-tasks/run-plan.js'
import { excessError } from './stop-reason.js'

/** Contains only tasks whose run has read `context.wrapUp`. */
const wrapUps = new TaskData<IsolatedController>()

/** Returns the signal that asks the run of a task to conclude. It is already aborted if a budget is exceeded. */
export function wrapUpSignal({ report }: TaskRegistry, entry: TaskEntry): AbortSignal {
  const wrapUp = wrapUps.ensure(entry, () => {
    const taskId = entry.record.id
    const made = new IsolatedController((error) => report(error, { source: 'abort-listener', taskId }))
    const excess = entry.ref?.getSnapshot().context.excess
    if (excess !== undefined) made.abort(excessError(entry, excess))
    return made
  })
  return wrapUp.signal
}

export const wrappingUp = (registry: TaskRegistry): Feature => ({
  wrapUp: (entry, excess) =>
    registry
      .use(runs)
      .contextOf(entry)
      .runInAsyncScope(() => wrapUps.get(entry)?.abort(excessError(entry, excess))),
})
