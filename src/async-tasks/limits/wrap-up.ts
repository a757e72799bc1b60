/** The signal that asks a run to conclude, because a budget of its task is exceeded (promise F10). */
import { PerTask } from '../../../machines/per-task.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { IsolatedController } from '../../callbacks/isolated-controller.js'
import type { Feature } from '../feature.js'
import type { TaskRegistry } from '../registry.js'
import { excessError } from './stop-reason.js'

class WrapUp {
  readonly #controller: IsolatedController

  /** @param report called with errors that listeners of the signal throw */
  constructor(report: (error: unknown) => void) {
    this.#controller = new IsolatedController(report)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** @param excess the exceeded budget, in words */
  begin(excess: string): void {
    this.#controller.abort(excessError(excess))
  }
}

/** Contains only tasks whose run has read `context.wrapUp`. */
const wrapUps = new PerTask<WrapUp>()

/** Returns the signal that asks the run of a task to conclude. It is already aborted if a budget is exceeded. */
export function wrapUpSignal({ report }: TaskRegistry, entry: TaskEntry): AbortSignal {
  const wrapUp = wrapUps.ensure(entry, () => {
    const taskId = entry.record.id
    const made = new WrapUp((error) => report(error, { source: 'abort-listener', taskId }))
    const excess = entry.ref?.getSnapshot().context.excess
    if (excess !== undefined) made.begin(excess)
    return made
  })
  return wrapUp.signal
}

export const wrappingUp = (): Feature => ({ wrapUp: (entry, excess) => wrapUps.get(entry)?.begin(excess) })
