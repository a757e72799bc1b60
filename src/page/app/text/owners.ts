/** The owner of a task in words. */
import type { PageTask } from '../../wire.js'

/** A run owns what it launches while it lasts: the server names it by its task. */
const OF_A_RUN = /^run:/

export function isRun(owner: string): boolean {
  return OF_A_RUN.test(owner)
}

/** The key of the task whose run this owner is; undefined for another owner. */
export function taskOfRun(owner: string): string | undefined {
  return isRun(owner) ? owner.replace(OF_A_RUN, 'async:') : undefined
}

/** @param task that of its run, where it is known */
export function ownerName(owner: string, task: PageTask | undefined): string {
  return isRun(owner) && task !== undefined ? `The run of ${task.title}` : owner
}

/** @param parent the task that has launched it, where it is known */
export function ownerText({ group, kind }: PageTask, parent: PageTask | undefined): string {
  if (kind === 'command' || !isRun(group)) return group
  return parent === undefined ? 'the run that launched it' : `the run of ${parent.title}`
}
