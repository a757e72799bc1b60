/** The types of the race kit: what is inferred, and what does not compile. */
import fc from 'fast-check'
import { describe, expectTypeOf, it } from 'vitest'
import { createActor, setup } from 'xstate'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { OutputObject } from '../../machines/records.js'
import type { Clock } from '../../src/system/clock.js'
import type { MemoryStore } from '../../src/store/index.js'
import {
  createManualClock,
  exploreRaces,
  raceScripts,
  replayRace,
  runUntilEvent,
  runUntilSettled,
  runUntilState,
  taskOutputs,
  type Race,
  type RaceOptions,
  type RaceSummary,
} from '../../src/testing/index.js'
import { recordDeliveryLog, type DeliveryLogEntry } from '../../src/testing/ledger.js'

describe('the types of a race', () => {
  it('infer the world from setup, for actors, checks and teardown', () => {
    const explore = () =>
      exploreRaces({
        setup: async (race) => ({ race, count: 0 }),
        actors: {
          a: [
            (world) => {
              expectTypeOf(world).toEqualTypeOf<{ race: Race; count: number }>()
            },
            { label: 'counts', run: ({ count }) => count + 1 },
          ],
          b: function* (world) {
            expectTypeOf(world.count).toBeNumber()
            yield 'a step'
          },
        },
        invariants: { small: ({ count }) => count < 3 },
        // @ts-expect-error the world has no such field
        atEnd: { large: (world) => Boolean(world.size) },
        teardown: ({ race }) => race.note('over'),
      })
    expectTypeOf(explore).returns.resolves.toEqualTypeOf<RaceSummary>()
  })

  it('infer what survives a crash from disk, for setup', () => {
    const explore = () =>
      exploreRaces({
        crashes: 1,
        disk: () => ({ log: [] as string[] }),
        setup: ({ disk, store, life, message }) => {
          expectTypeOf(disk).toEqualTypeOf<{ log: string[] }>()
          expectTypeOf(store).toEqualTypeOf<MemoryStore>()
          expectTypeOf(life).toBeNumber()
          expectTypeOf(message('append', () => disk.log.push('a'))).resolves.toBeNumber()
          expectTypeOf(message('fetch', () => Promise.resolve('a'))).resolves.toBeString()
          // @ts-expect-error a message does something
          void message('nothing')
          return { log: disk.log }
        },
        actors: { a: [({ log }, race) => [log, expectTypeOf(race.disk).toBeUnknown()]] },
      })
    expectTypeOf(explore).returns.resolves.toEqualTypeOf<RaceSummary>()
    expectTypeOf<RaceOptions<number, undefined, { log: string[] }>['setup']>()
      .parameter(0)
      .toEqualTypeOf<Race<{ log: string[] }>>()
    expectTypeOf<RaceOptions<number>['crashes']>().toEqualTypeOf<boolean | number | undefined>()
    // @ts-expect-error a number, or true or false
    void exploreRaces({ setup: () => 1, actors: {}, crashes: 'often' }).catch(() => undefined)
  })

  it('infer the input from the arbitrary', () => {
    const options: RaceOptions<number, Record<string, 'up'[]>> = {
      inputs: raceScripts(fc.constant('up')),
      setup: (_, script) => Object.keys(script).length,
      actors: (_, script) => Object.fromEntries(Object.keys(script).map((name) => [name, []])),
    }
    expectTypeOf(replayRace<number, Record<string, 'up'[]>>)
      .parameter(0)
      .toHaveProperty('order')
    expectTypeOf(options.inputs).toEqualTypeOf<fc.Arbitrary<Record<string, 'up'[]>> | undefined>()
  })

  it('refuse what is no race', () => {
    const misuses = [
      // @ts-expect-error nobody races
      () => exploreRaces({ setup: () => 1 }),
      // @ts-expect-error there is no such mode
      () => exploreRaces({ setup: () => 1, actors: { a: [() => 1] }, mode: 'all' }),
      // @ts-expect-error a replay needs an order
      () => replayRace({ setup: () => 1, actors: { a: [() => 1] } }),
    ]
    expectTypeOf(misuses).toBeArray()
  })

  it('of a clock, a race and what is drawn fit the package', () => {
    expectTypeOf(createManualClock()).toExtend<Clock>()
    expectTypeOf<Race['clock']>().toExtend<Clock>()
    expectTypeOf(taskOutputs()).toEqualTypeOf<fc.Arbitrary<OutputObject>>()
  })
})

describe('the types of waits', () => {
  const machine = setup({ types: { events: {} as { type: 'press'; times: number } | { type: 'look' } } }).createMachine(
    {},
  )

  it('are those of the actor', () => {
    const clock = createManualClock()
    const actor = createActor(machine)
    const press = () => runUntilEvent(actor, 'press', clock)
    expectTypeOf(press).returns.resolves.toEqualTypeOf<{ type: 'press'; times: number }>()
    const state = () => runUntilState(actor, ({ value }) => value === 'on', clock)
    expectTypeOf(state).returns.resolves.toHaveProperty('value')
    const wait = () => runUntilSettled(new AsyncTaskManager().waitFor(['a']), clock)
    expectTypeOf(wait).returns.resolves.toHaveProperty('settled')
  })
})

describe('the types of a log', () => {
  it('narrow by type', () => {
    const accepted = (entry: DeliveryLogEntry) => (entry.type === 'accepted' ? entry.taskIds : undefined)
    expectTypeOf(accepted).returns.toEqualTypeOf<readonly string[] | undefined>()
    expectTypeOf(recordDeliveryLog).parameter(0).toExtend<AsyncTaskManager | object>()
  })
})
