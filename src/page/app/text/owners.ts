/** Describes the owner of a task. */
import type { PageTask } from '../../wire.js'

/** A run owns the tasks that it launches. The server names such an owner after the run's task. */
const OF_A_RUN = /^run:/

export function isRun(owner: string): boolean {
  return OF_A_RUN.test(owner)
}

/** Returns the key of the task whose run is this owner; undefined for other owners. */
export function taskOfRun(owner: string): string | undefined {
  return isRun(owner) ? owner.replace(OF_A_RUN, 'async:') : undefined
}

/** @param task the task of the run, if known */
export function ownerName(owner: string, task: PageTask | undefined): string {
  return isRun(owner) && task !== undefined ? `The run of ${task.title}` : owner
}

/** @param parent the task that launched it, if known */
export function ownerText({ group, kind }: PageTask, parent: PageTask | undefined): string {
  if (kind === 'command' || !isRun(group)) return group
  return parent === undefined ? 'the run that launched it' : `the run of ${parent.title}`
}
