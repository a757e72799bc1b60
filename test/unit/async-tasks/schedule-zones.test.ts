/**
 * The times of schedules at each change of an offset in 2027, in all zones that Intl knows, against an oracle that uses only the offsets. Of zones with the
 * same change, one is tried.
 */
import { describe, expect, it, vi } from 'vitest'
import { HOUR, MINUTE, scheduledTasks, SECOND } from '../../support/scheduled-tasks.js'

const wake = { message: 'look' } as const

interface Change {
  readonly zone: string
  /** When the offset changes, in ms since the epoch. */
  readonly at: number
  /** The offsets before and after the change, in ms. */
  readonly before: number
  readonly after: number
}

/** Returns the offset of a zone to UTC, in ms. */
function offsetReader(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`) - at
}

function changesOf(zone: string): Change[] {
  const offset = offsetReader(zone)
  const changes: Change[] = []
  for (let day = Date.UTC(2027, 0, 1); day < Date.UTC(2028, 0, 1); day += 24 * HOUR) {
    const [before, after] = [offset(day), offset(day + 24 * HOUR)]
    if (before === after) continue
    let [low, high] = [day, day + 24 * HOUR]
    while (high - low > SECOND) {
      const middle = low + Math.floor((high - low) / 2 / SECOND) * SECOND
      if (offset(middle) === before) low = middle
      else high = middle
    }
    changes.push({ zone, at: high, before, after })
  }
  return changes
}

const ofAllZones = Intl.supportedValuesOf('timeZone').flatMap(changesOf)
const changes = [
  ...new Map(ofAllZones.map((change) => [`${change.at} ${change.before} ${change.after}`, change])).values(),
]

/** The local times that the change leaves out or repeats, a quarter of an hour apart, as ms since the epoch of a zone without an offset. */
function affected({ at, before, after }: Change): number[] {
  const first = at + Math.min(before, after)
  return Array.from({ length: Math.abs(after - before) / (15 * MINUTE) }, (_, quarter) => first + quarter * 15 * MINUTE)
}

const dailyAt = (local: number): string => `${new Date(local).getUTCMinutes()} ${new Date(local).getUTCHours()} * * *`
const text = (at: number | undefined): string => (at === undefined ? 'never' : new Date(at).toISOString())

/** When a local time is due: the first of two, and the end of a skipped hour. */
const due = (local: number, { at, before, after }: Change): number => (after > before ? at : local - before)

function nextOf(from: number, input: { cron: string } | { at: string }, timeZone: string): number | undefined {
  const { schedule } = scheduledTasks({}, from)
  const made = schedule({ ...input, timeZone, ...wake })
  const { next } = made
  made.cancel()
  return next
}

describe('schedules in all zones', () => {
  it('F16: a daily time fires once on the day on which daylight saving time begins or ends', () => {
    expect(changes.length).toBeGreaterThan(20)
    const wrong = changes.flatMap((change) =>
      affected(change).flatMap((local) => {
        const { zone } = change
        const cron = dailyAt(local)
        const expected = due(local, change)
        const first = nextOf(expected - MINUTE, { cron }, zone)
        // The next one is on the next day: with the new offset, unless that day has a change of its own.
        const second = nextOf(expected, { cron }, zone)
        const following = local + 24 * HOUR - change.after
        return first === expected && second === following
          ? []
          : [`${zone} "${cron}": ${text(first)}, ${text(second)}; expected ${text(expected)}, ${text(following)}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  it('F16: a local time that does not exist is as much later, and of two equal ones the first counts', () => {
    const wrong = changes.flatMap((change) =>
      affected(change).flatMap((local) => {
        const { zone } = change
        const at = new Date(local).toISOString().slice(0, 16)
        const next = nextOf(change.at - 24 * HOUR, { at }, zone)
        const expected = local - change.before
        return next === expected ? [] : [`${zone} ${at}: ${text(next)}; expected ${text(expected)}`]
      }),
    )
    expect(wrong).toEqual([])
  })

  it('F16: a period does not change', () => {
    for (const { zone, at } of changes) {
      const { manager, clock, schedule } = scheduledTasks({}, at - 3 * HOUR)
      schedule({ every: 2 * HOUR, timeZone: zone, ...wake })
      clock.advance(2 * HOUR)
      expect(manager.schedules()).toMatchObject([{ fired: 1, next: at + HOUR, missedFirings: 0 }])
    }
  })
})

it.each([[undefined], ['Etc/Unknown']])(
  'F16: a host whose system has no zone that Intl knows (%s) uses UTC, so that the next process can read its schedules',
  (timeZone) => {
    const options = new Intl.DateTimeFormat().resolvedOptions()
    const spied = vi.spyOn(Intl.DateTimeFormat.prototype, 'resolvedOptions')
    spied.mockReturnValue({ ...options, timeZone: timeZone as unknown as string })
    const { manager } = scheduledTasks()
    try {
      manager.schedule({ cron: '30 2 * * *', ...wake })
    } finally {
      spied.mockRestore()
    }
    expect(manager.schedules()).toMatchObject([{ timeZone: 'UTC', next: Date.UTC(2027, 0, 5, 2, 30) }])
  },
)
