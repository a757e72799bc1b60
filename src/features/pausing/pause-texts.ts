/** Describes pauses in words. */
import type { TaskPause } from '../../../machines/registry-events.js'
import { toOneLine } from '../../data/control-characters.js'
import { isoTime } from '../../data/duration.js'

const MAX_NAMED = 10

/** Describes pauses, one per line. The pause of all tasks comes first. After ten lines, one more line counts the rest. */
export function pauseLines(found: readonly TaskPause[]): string[] {
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
