/** A rejection that nothing handles fails the race in which it happens, with its order; a replay must still have what its order names. */
import { afterEach, expect, it } from 'vitest'
import { exploreRaces, RaceError, replayRace, type RaceOptions } from 'agent-tasks/testing'

/** Its save is not awaited, and fails when the second actor has gone first. */
const careless: RaceOptions<{ isClosed: boolean }> = {
  name: 'careless',
  setup: () => ({ isClosed: false }),
  actors: {
    saver: [
      (world) => {
        void (world.isClosed ? Promise.reject(new Error('it is closed')) : Promise.resolve())
      },
    ],
    closer: [(world) => void (world.isClosed = true)],
  },
}

const listeners = process.listeners('unhandledRejection')

afterEach(() => {
  expect(process.listeners('unhandledRejection')).toEqual(listeners)
})

const failureOf = (race: Promise<unknown>): Promise<RaceError> =>
  race.then(
    () => expect.unreachable('the race was not lost'),
    (error: unknown) => error as RaceError,
  )

it.each([
  ['random', {}],
  ['exhaustive', { mode: 'exhaustive' }],
] as const)('fails a race in %s order, and the order alone fails again', async (_, mode) => {
  const error = await failureOf(exploreRaces({ ...careless, ...mode }))
  expect(error).toBeInstanceOf(RaceError)
  expect(error.order).toEqual(['closer', 'saver'])
  expect(error.run.failure).toMatchObject({ kind: 'rejection', cause: new Error('it is closed') })
  expect(error.message).toContain('careless: a promise was rejected and nothing handled it: it is closed')
  expect((await failureOf(replayRace({ ...careless, order: error.order }))).run).toEqual(error.run)
})

it('does not fail the orders without one', async () => {
  expect(await replayRace({ ...careless, order: ['saver', 'closer'] })).toMatchObject({ skipped: [] })
})

it('a replay fails when its order names what the race no longer has', async () => {
  await expect(replayRace({ ...careless, order: ['saver', 'the disk answers', 'closer'] })).rejects.toMatchObject({
    code: 'RACE_CHANGED',
    message: expect.stringContaining("the order names 'the disk answers', which the race no longer has") as string,
  })
})
