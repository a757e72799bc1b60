/** Describes the owner of a task. */
import type { PageTask } from '../../wire.js'

/** The owner of tasks that a run has launched is `run:` and the id of the run's task. */
const OF_A_RUN = /^run:/

export function isRun(owner: string): boolean {
  return OF_A_RUN.test(owner)
}

/** Returns the key of the task whose run is this owner; undefined if the owner is not a run. */
export function taskOfRun(owner: string): string | undefined {
  return isRun(owner) ? owner.replace(OF_A_RUN, 'async:') : undefined
}

/** @param task the task of the run, if the page knows the task */
export function ownerName(owner: string, task: PageTask | undefined): string {
  return isRun(owner) && task !== undefined ? `The run of ${task.title}` : owner
}

/** @param parent the task that launched this task, if the page knows it */
export function ownerText({ group, kind }: PageTask, parent: PageTask | undefined): string {
  if (kind === 'command' || !isRun(group)) return group
  return parent === undefined ? 'the run that launched it' : `the run of ${parent.title}`
}
