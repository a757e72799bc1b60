/** Describes pauses in words. */
import type { TaskPause } from '../../../machines/pauses.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { toOneLine } from '../../text/control-characters.js'
import { isoTime } from '../../text/duration.js'
import type { RegistryReads } from '../registry-reads.js'

type PauseReads = Pick<RegistryReads, 'pauses'>

/** Returns the mark of a paused task in a list; undefined for a task that is not paused. */
export const pausedText = ({ pauses }: PauseReads, { status, owner }: AsyncTaskInfo): 'paused' | undefined =>
  status === 'queued' && pauses.concern(owner) ? 'paused' : undefined

/** How many pauses a list shows. */
const MAX_NAMED = 10

/**
 * Describes pauses, one per line: those that concern `owner`, or all of them if `owner` is not given. The pause of all tasks comes first. After ten
 * lines, one more line counts the rest.
 */
export function pauseLines({ pauses }: PauseReads, owner?: string): string[] {
  const found = owner === undefined ? pauses.list() : pauses.of(owner)
  const shown = [...found.filter((one) => one.owner === undefined), ...found.filter((one) => one.owner !== undefined)]
  const more = shown.length - MAX_NAMED
  return [
    ...shown.slice(0, MAX_NAMED).map(pauseLine),
    ...(more > 0 ? [`Paused: the tasks of ${more} more owner(s).`] : []),
  ]
}

export function pauseLine({ owner, deliveries, since, by }: TaskPause): string {
  const whose = owner === undefined ? 'all tasks' : `the tasks of ${owner}`
  const held = deliveries === 'hold' ? '; results are held' : ''
  return toOneLine(`Paused: ${whose}, since ${isoTime(since)}${by === undefined ? '' : `, by ${by}`}${held}.`)
}
