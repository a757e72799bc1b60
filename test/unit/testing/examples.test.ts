/** The bugs of docs/testing.md are found in both modes, and the fixed versions pass in both. */
import { describe, expect, it } from 'vitest'
import { hostThatReadsTwice, hostWithLeases } from '../../../docs/examples/testing/double-delivery.js'
import { carefulHost, forgetfulHost } from '../../../docs/examples/testing/crashed-host.js'
import { autoTrigger, naiveTrigger } from '../../../docs/examples/testing/lost-completion.js'
import { carefulEditor, forgetfulEditor } from '../../../docs/examples/testing/own-machine.js'
import { laneOfActors, naiveLane } from '../../../docs/examples/testing/two-at-once.js'
import { exploreRaces, type RaceError, type RaceOptions } from 'agent-tasks/testing'

const lostBy = async <World>(options: RaceOptions<World>): Promise<RaceError> =>
  exploreRaces(options).then(
    () => expect.unreachable('the bug was not found'),
    (error: unknown) => error as RaceError,
  )

describe.each([
  {
    bug: 'the lost completion of a naive auto-trigger',
    wrong: naiveTrigger,
    right: autoTrigger,
    shortest: ['worker', 'worker', 'the model answers'],
    counts: { failed: 1, runs: 2, right: 8 },
  },
  {
    bug: 'the double delivery of a host that reads reminders twice',
    wrong: hostThatReadsTwice,
    right: hostWithLeases,
    shortest: ['worker', 'worker'],
    counts: { failed: 34, runs: 45, right: 259 },
  },
  {
    bug: 'two commands at once in a naive lane',
    wrong: naiveLane,
    right: laneOfActors,
    shortest: ['alice', 'bob', 'the instance is connected', 'the instance is connected #2'],
    counts: { failed: 8, runs: 20, right: 4 },
  },
  {
    bug: 'the lost edit of an editor, a machine without any manager',
    wrong: forgetfulEditor,
    right: carefulEditor,
    shortest: ['writer', 'clock', 'writer', 'the server stores it'],
    counts: { failed: 1, runs: 3, right: 3 },
  },
  {
    bug: 'the lost result of a host that crashes, without any manager',
    wrong: forgetfulHost,
    right: carefulHost,
    shortest: [
      ...(['worker', 'worker', 'the agent is idle', 'the agent is idle #2'] as const),
      'crash before the transcript is written #2',
    ],
    counts: { failed: 82, runs: 230, right: 286 },
  },
] as const)('$bug', ({ wrong, right, shortest, counts }) => {
  // The types of the worlds differ.
  const [wrongRace, rightRace] = [wrong, right] as unknown as readonly [RaceOptions<unknown>, RaceOptions<unknown>]

  it('is found within 1,000 random orders, and shrunk to the shortest order', async () => {
    const error = await lostBy({ ...wrongRace, numRuns: 1000, seed: 20_260_101 })
    expect(error.runs).toBeLessThan(1000)
    expect(error.order).toHaveLength(shortest.length)
  })

  it('is found by running every order', async () => {
    const error = await lostBy({ ...wrongRace, mode: 'exhaustive' })
    expect({ failed: error.failed, runs: error.runs }).toEqual({ failed: counts.failed, runs: counts.runs })
    expect(error.order).toEqual(shortest)
  })

  it('is not in the fixed version, in either mode', async () => {
    expect(await exploreRaces({ ...rightRace, numRuns: 200 })).toMatchObject({
      mode: 'random',
      runs: Math.min(200, counts.right),
    })
    expect(await exploreRaces({ ...rightRace, mode: 'exhaustive' })).toEqual({
      mode: 'exhaustive',
      runs: counts.right,
      orders: counts.right,
    })
  })
})
