/** Pauses in words. */
import type { TaskPause } from '../../../machines/pauses.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { toOneLine } from '../../text/control-characters.js'
import { isoTime } from '../../text/duration.js'
import type { RegistryReads } from '../registry-reads.js'

type PauseReads = Pick<RegistryReads, 'pauses'>

/** What the line of a task says; undefined for one that no pause holds back. */
export const pausedText = ({ pauses }: PauseReads, { status, owner }: AsyncTaskInfo): 'paused' | undefined =>
  status === 'queued' && pauses.concern(owner) ? 'paused' : undefined

/** How many pauses a list names. */
const MAX_NAMED = 10

/** One line for each pause that concerns an owner; without an owner, for the first of all. */
export function pauseLines({ pauses }: PauseReads, owner?: string): string[] {
  const shown = owner === undefined ? pauses.list() : pauses.of(owner)
  const more = shown.length - MAX_NAMED
  return [
    ...shown.slice(0, MAX_NAMED).map(pauseLine),
    ...(more > 0 ? [`Paused: the tasks of ${more} more owners.`] : []),
  ]
}

/** A pause in one line. */
export function pauseLine({ owner, deliveries, since, by }: TaskPause): string {
  const whose = owner === undefined ? 'all tasks' : `the tasks of ${owner}`
  const held = deliveries === 'hold' ? '; results are held' : ''
  return toOneLine(`Paused: ${whose}, since ${isoTime(since)}${by === undefined ? '' : `, by ${by}`}${held}.`)
}
