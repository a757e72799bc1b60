/** What a task waits for, in words. */
import type { AsyncTaskInfo } from '../../../machines/records.js'

/** The most tasks that are named. */
const MAX_NAMED = 3

/** Names the tasks that have to end first; undefined for a task that waits for none. @param nameOf the shown id of a task */
export function waitsText(
  { waitsFor }: AsyncTaskInfo,
  nameOf: (task: Pick<AsyncTaskInfo, 'id'>) => string = ({ id }) => id,
): string | undefined {
  if (waitsFor === undefined) return undefined
  const names = waitsFor.slice(0, MAX_NAMED).map((id) => nameOf({ id }))
  const more = waitsFor.length - names.length
  return `waits for ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
