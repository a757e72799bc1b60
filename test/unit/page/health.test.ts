// The figures of the last hour at their limits, on a clock of the test.
import { expect, it } from 'vitest'
import { Health } from '../../../src/page/health.js'
import { Versions } from '../../../src/page/versioned.js'

function createSubject() {
  const state = { now: 1_000_000, running: 0 }
  const health = new Health(
    new Versions(),
    () => state.now,
    () => ({ running: state.running, queued: 0, owed: 0 }),
  )
  return { state, health }
}

it('a point has the last 1,000 durations, and counts all', () => {
  const { health } = createSubject()
  for (let duration = 0; duration < 1000; duration += 1) health.end('succeeded', 5)
  for (let duration = 0; duration < 999; duration += 1) health.end('failed', 7)
  expect(health.all()).toMatchObject([{ completed: 1000, failed: 999, cancelled: 0, p50: 7, p99: 7 }])
  const { health: other } = createSubject()
  for (let at = 1; at <= 100; at += 1) other.end('stopped', at)
  expect(other.all()).toMatchObject([{ cancelled: 100, p50: 50, p99: 99 }])
})

it('one of 1,000 durations that is long is not among those that 99 % did not exceed, and 1,001 replace the first', () => {
  const { health } = createSubject()
  health.end('succeeded', 1)
  for (let at = 0; at < 999; at += 1) health.end('succeeded', 2)
  health.end('succeeded', 2)
  // The first one is gone: none is below 2.
  for (let at = 0; at < 499; at += 1) health.end('succeeded', 3)
  expect(health.all()).toMatchObject([{ p50: 2, p99: 3 }])
})

it('there are 360 points of ten seconds, and those between two have the depths of the first', () => {
  const { state, health } = createSubject()
  state.running = 3
  health.start()
  state.now += 40_000
  state.running = 8
  health.start()
  expect(health.all().map(({ at, started, running }) => [at, started, running])).toEqual([
    [1_000_000, 1, 3],
    [1_010_000, 0, 3],
    [1_020_000, 0, 3],
    [1_030_000, 0, 3],
    [1_040_000, 1, 8],
  ])
  state.now += 355 * 10_000
  expect(
    health
      .all()
      .map(({ at }) => at)
      .at(0),
  ).toBe(1_000_000)
  expect(health.all()).toHaveLength(360)
  state.now += 10_000
  expect([health.all().length, health.all()[0]?.at]).toEqual([360, 1_010_000])
  state.now += 86_400_000
  const all = health.all()
  expect([all.length, all[0]?.at, all.at(-1)?.at]).toEqual([360, state.now - 3_590_000, state.now])
})

it('a reader is sent the points that have changed, and none when nothing has', () => {
  const versions = new Versions()
  const state = { now: 1_000_000, running: 0 }
  const health = new Health(
    versions,
    () => state.now,
    () => ({ running: state.running, queued: 0, owed: 0 }),
  )
  health.start()
  const { last } = versions
  health.roll()
  expect([versions.last, health.since(last)]).toEqual([last, []])
  state.running = 1
  health.roll()
  expect(health.since(last)).toMatchObject([{ at: 1_000_000, running: 1 }])
  state.now = 1_010_000
  health.roll()
  expect(health.since(last).map(({ at }) => at)).toEqual([1_000_000, 1_010_000])
})
