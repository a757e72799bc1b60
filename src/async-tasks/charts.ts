/**
 * The charts that registries run. A chart that is given its implementations is read anew, which takes longer than the lives of ten tasks;
 * so it is given them once, and an action finds whose task it acts for by the system of its actor.
 */
import { asyncTaskMachine, type AsyncTaskMachine } from '../../machines/async-task.js'
import type { TaskQuestion } from '../../machines/records.js'
import { taskRegistryMachine, type TaskRegistryMachine } from '../../machines/task-registry.js'
import { runDirectly } from '../engine/direct-chart.js'

/** The charts that the host may bring. */
export interface RegistryCharts {
  readonly registry?: TaskRegistryMachine
  readonly task?: AsyncTaskMachine
}

/** What a registry does for its tasks, inside their transitions. */
interface TaskHost {
  requestAbort(taskId: string, timeoutMs: number): void
  noteQuestions(taskId: string, questions: readonly TaskQuestion[]): void
}

/** By the system of the registry's actor. */
const hosts = new WeakMap<object, TaskHost>()
const hosted = new WeakMap<AsyncTaskMachine, AsyncTaskMachine>()

/** Says who acts for the tasks of a registry. */
export function noteHost(system: object, host: TaskHost): void {
  hosts.set(system, host)
}

/**
 * The charts for a registry and its tasks.
 * @param given those that the host brings; they may use all of XState, and run as XState runs them
 * @param isInspected an inspector is to see all that XState shows
 */
export function chartsFor(given: RegistryCharts, isInspected: boolean): Required<RegistryCharts> {
  const { registry = taskRegistryMachine, task = asyncTaskMachine } = given
  let own = hosted.get(task)
  if (own === undefined) {
    own = task.provide({
      actions: {
        requestAbort: ({ context, system }) =>
          hosts.get(system as object)?.requestAbort(context.id, context.timeoutMs ?? 0),
        noteQuestions: ({ context, system }) =>
          hosts.get(system as object)?.noteQuestions(context.id, context.questions),
      },
    })
    hosted.set(task, own)
  }
  return {
    registry: runDirectly(registry, !isInspected && given.registry === undefined),
    task: runDirectly(own, !isInspected && given.task === undefined),
  }
}
