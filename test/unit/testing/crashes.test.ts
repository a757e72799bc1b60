/** Crashes: where the process may die, what survives, and that a life which has ended has no effect. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError, replayRace, type Race, type RaceOptions } from 'agent-tasks/testing'
import type { StoreChange } from 'agent-tasks/store'
import { FixedOrder } from '../../../src/testing/fixed-order.js'
import { orderOf } from '../../../src/testing/race-report.js'
import { runRace, type RaceRun } from '../../../src/testing/race-run.js'
import { shortenOrder } from '../../../src/testing/shorten-order.js'

interface Disk {
  readonly log: string[]
}

const disk = (): Disk => ({ log: [] })

const row = (id: string): StoreChange => ({
  table: 'instances',
  put: { id, secretSha256: '', registration: {} },
})

/** A world that is the race itself, on an open store. */
const open = (race: Race<Disk>): Race<Disk> => {
  race.store.open()
  return race
}

type Options = RaceOptions<Race<Disk>, undefined, Disk>

const race = (options: Partial<Options>): Options => ({
  disk,
  setup: open,
  actors: { a: [() => undefined] },
  crashes: true,
  ...options,
})

const failureOf = async (exploration: Promise<unknown>): Promise<RaceError> => {
  const error: unknown = await exploration.catch((error: unknown) => error)
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

/** Every order of a race, by what the end of each was. */
const ordersOf = async (options: Options, atEnd: (world: Race<Disk>) => unknown): Promise<unknown[]> => {
  const ends: unknown[] = []
  const add = (world: Race<Disk>): void => void ends.push(atEnd(world))
  await exploreRaces({ ...options, atEnd: { add }, mode: 'exhaustive' })
  return ends
}

const stored = ({ store }: Race<Disk>): string =>
  store
    .contents()
    .instances.map(({ id }) => id)
    .join()

describe('the process may die', () => {
  it('before a write and after it, and after a turn', async () => {
    const writing = race({ crashes: 1, actors: { a: [({ store }) => store.write([row('x')])] } })
    const ends = await ordersOf(writing, (world) => `life ${world.life}: ${stored(world)}`)
    // It lives on; it dies after the turn, before the write, after the write.
    expect(ends).toEqual(['life 1: x', 'life 2: x', 'life 2: ', 'life 2: x'])
  })

  it('before a message and after it', async () => {
    const sending = race({
      crashes: 1,
      actors: { a: [({ message, disk }) => void message('append', () => disk.log.push('x'))] },
    })
    const ends = await ordersOf(sending, ({ life, disk }) => `life ${life}: ${disk.log.join()}`)
    expect(ends).toEqual(['life 1: x', 'life 2: x', 'life 2: ', 'life 2: x'])
  })

  it('in the setup, of the next life too', async () => {
    const starting = race({
      setup: (race) => {
        race.store.open()
        void race.store.write([row(`life-${race.life}`)])
        return race
      },
    })
    const ends = await ordersOf(starting, stored)
    expect(ends).toContain('life-1')
    expect(ends).toContain('life-3')
    expect(ends).toContain('life-1,life-2,life-3')
  })

  it.each([
    { crashes: false, lives: [1] },
    { crashes: 0, lives: [1] },
    { crashes: 1, lives: [1, 2] },
    { crashes: true, lives: [1, 2, 3] },
    { crashes: 3, lives: [1, 2, 3, 4] },
  ])('$crashes times in an order at most', async ({ crashes, lives }) => {
    const actors = {
      a: [1, 2, 3, 4].map(
        () =>
          ({ store }: Race<Disk>) =>
            store.write([row('x')]),
      ),
    }
    const ends = await ordersOf(race({ crashes, actors }), ({ life }) => life)
    expect([...new Set(ends)].sort()).toEqual(lives)
  })

  it('once, where a message writes to the store', async () => {
    const send = ({ message, store }: Race<Disk>): void => void message('append', () => store.write([row('x')]))
    const ends = await ordersOf(race({ crashes: 1, actors: { a: [send, () => undefined] } }), ({ life }) => life)
    expect([...new Set(ends)]).toEqual([1, 2])
  })

  it('not in a check, and not in the teardown', async () => {
    let lives = 0
    const write = ({ store, life }: Race<Disk>): void => {
      void store.write([row('x')])
      lives = Math.max(lives, life)
    }
    const { orders } = await exploreRaces(
      race({ crashes: 1, mode: 'exhaustive', invariants: { write }, atEnd: { write }, teardown: write }),
    )
    expect({ orders, lives }).toEqual({ orders: 2, lives: 2 })
  })
})

describe('the next life', () => {
  const order = (...names: string[]) => ({ order: names })

  it('starts on what was stored, with a new world at the same time', async () => {
    const seen: unknown[] = []
    await replayRace({
      ...race({
        startTime: 5,
        setup: (race) => {
          const { instances } = race.store.open()
          seen.push([race.life, race.clock.now(), instances.map(({ id }) => id), [...race.disk.log]])
          return race
        },
        actors: {
          a: [
            ({ clock, store, disk }) => {
              void store.write([row('x')])
              disk.log.push('y')
              clock.setTimeout(() => undefined, 10)
            },
          ],
        },
      }),
      ...order('a', 'clock', 'crash'),
    })
    expect(seen).toEqual([
      [1, 5, [], []],
      [2, 15, ['x'], ['y']],
    ])
  })

  it('goes on with the steps that no actor has begun', async () => {
    const steps = ['first', 'second', 'third'].map((label) => ({
      label,
      run: ({ message, disk, life }: Race<Disk>) =>
        message('append', () => disk.log.push(`${label} in life ${life}`)).then(() => undefined),
    }))
    const { timeline } = await replayRace({
      ...race({ actors: { a: steps }, atEnd: { shown: ({ disk }) => disk.log.length === 2 } }),
      ...order('a', 'a', 'crash before append #2', 'a'),
    })
    expect(timeline.split('\n').map((line) => line.trim())).toEqual([
      'time  actor                   step           what happened',
      '0 ms  a                       first          append',
      '0 ms  a                       second',
      '0 ms  crash before append #2  life 2 starts',
      '0 ms  a                       third          append #3',
    ])
  })

  it('asks for its actors with the new world, and ends a generator that has begun', async () => {
    const actors = (world: Race<Disk>) => ({
      list: [() => world.disk.log.push('list 1'), () => world.disk.log.push(`list 2 in life ${world.life}`)],
      begun: function* () {
        world.disk.log.push('begun')
        yield 'goes on'
        world.disk.log.push('never')
      },
      // eslint-disable-next-line require-yield
      later: function* () {
        world.disk.log.push(`later in life ${world.life}`)
      },
    })
    const logs: string[][] = []
    await replayRace({
      ...race({ actors, atEnd: { log: ({ disk }) => void logs.push([...disk.log]) } }),
      ...order('list', 'begun', 'crash', 'list', 'later'),
    })
    expect(logs).toEqual([['list 1', 'begun', 'list 2 in life 2', 'later in life 2']])
  })

  it('drops a step that has not settled', async () => {
    const { order: taken } = await replayRace({
      ...race({ actors: { a: [() => new Promise(() => undefined), () => undefined] } }),
      ...order('a', 'crash', 'a'),
    }).catch((error: unknown) => error as RaceError)
    // Without the crash it hangs.
    expect(taken).toEqual(['a'])
    const paused = race({ actors: { a: [({ pause }) => pause('a pause'), () => undefined] } })
    const replay = await replayRace({ ...paused, ...order('a', 'crash', 'a') })
    expect(replay.order).toEqual(['a', 'crash', 'a'])
  })

  it('has as much time for its timers as the first one', async () => {
    const ticks: number[] = []
    const ticking = race({
      drainMs: 10,
      setup: (race) => {
        race.clock.setTimeout(() => ticks.push(race.clock.now()), 8)
        return open(race)
      },
    })
    await replayRace({ ...ticking, ...order('a', 'clock', 'crash') })
    expect(ticks).toEqual([8, 16])
  })

  it('is the only one of which the race disposes', async () => {
    const disposed: number[] = []
    await replayRace({ ...race({ teardown: ({ life }) => void disposed.push(life) }), ...order('a', 'crash') })
    expect(disposed).toEqual([2])
  })
})

describe('a life that has ended', () => {
  const logs: string[] = []
  /** It goes on after its write, catches everything, and tries all that it can. */
  const stubborn = async (race: Race<Disk>): Promise<void> => {
    const { store, disk, clock, message, pause, schedule, scheduleFunction, note } = race
    const act = async (name: string): Promise<void> => {
      const log = (what: string) => () => {
        disk.log.push(`${name} ${what}`)
        void store.write([row(`${name} ${what}`)])
      }
      for (const attempt of [
        () => store.write([row(name)]),
        () => void disk.log.push(name),
        () => void clock.setTimeout(log('timer'), 1),
        () => void message('append', log('message')),
        () => void pause('a pause').then(log('pause')),
        () => void schedule(Promise.resolve(), 'a promise').then(log('promise')),
        () => void scheduleFunction(() => Promise.reject(new Error('no')), 'a call')().catch(log('call')),
        () => note(`${name} was here`),
      ]) {
        try {
          attempt()
        } catch {
          continue
        }
        await Promise.resolve()
      }
    }
    clock.setTimeout(() => void act('timer'), 5)
    void race.pause('early').then(() => act('early'))
    void store.write([row('first')])
    await act('late')
    throw new Error('never reported')
  }

  it.each(['before', 'after'])('has no effect when it went on, %s its write', async (when) => {
    const { timeline } = await replayRace({
      ...race({
        actors: { a: [stubborn] },
        atEnd: { end: (world) => void logs.push(stored(world), world.disk.log.join()) },
      }),
      order: ['a', `crash ${when} write`],
    })
    expect(logs.splice(0)).toEqual([when === 'after' ? 'first' : '', ''])
    expect(timeline).not.toContain('was here')
    expect(timeline.split('\n')).toHaveLength(3)
  })

  it('gets no answer to its messages, has no timers, and no result in the timeline', async () => {
    const seen: string[] = []
    const dead: Race<Disk>[] = []
    const send = (world: Race<Disk>): string => {
      dead.push(world)
      world.clock.setTimeout(() => undefined, 5)
      const listen = (name: string) => () => void seen.push(name)
      void world.message('append', () => undefined).then(listen('of append'), listen('of append'))
      void world.message('another', () => undefined).then(listen('of another'), listen('of another'))
      return 'done'
    }
    const sending = race({ actors: { a: [send] } })
    const { timeline } = await replayRace({ ...sending, order: ['a', 'crash after append'] })
    expect({ seen, timers: dead[0]?.clock.pending }).toEqual({ seen: [], timers: 0 })
    expect(timeline).not.toContain('done')
  })

  it('has no effect in any order', async () => {
    const { runs } = await exploreRaces(
      race({
        actors: {
          a: [
            ({ store, disk }) => {
              void store.write([row('x')])
              disk.log.push('x')
              void store.write([row('y')])
              disk.log.push('y')
            },
          ],
        },
        // What follows a write is on the disk only if the process lived on.
        invariants: { 'in order': (world) => stored(world).startsWith(world.disk.log.join()) },
        mode: 'exhaustive',
      }),
    )
    // Without a crash, and with one or two of: after the turn, and before and after each of two writes. A life without a turn cannot die.
    expect(runs).toBe(6)
  })

  it('does not have its rejections reported; one that lives on does', async () => {
    const careless = race({
      actors: {
        a: [
          ({ store, message }) => {
            void store.write([row('x')])
            void Promise.reject(new Error('after a write'))
            void message('append', () => Promise.reject(new Error('of a message')))
          },
        ],
      },
    })
    await replayRace({ ...careless, order: ['a', 'crash before write'] })
    await replayRace({ ...careless, order: ['a', 'crash after write'] })
    await expect(replayRace({ ...careless, order: ['a'] })).rejects.toThrow('nothing handled it: after a write')
    const error = await failureOf(exploreRaces({ ...careless, seed: 1 }))
    expect(error.order).toEqual(['a'])
  })

  it('does not have what it throws reported, in a step, a timer or a setup', async () => {
    const writeAndThrow = ({ store }: Race<Disk>): void => {
      void store.write([row('x')])
      throw new Error('no')
    }
    const inStep = race({ actors: { a: [writeAndThrow] } })
    await replayRace({ ...inStep, order: ['a', 'crash after write'] })
    await expect(replayRace({ ...inStep, order: ['a'] })).rejects.toThrow("step 'writeAndThrow' of a threw no")
    const inTimer = race({ actors: { a: [(world) => void world.clock.setTimeout(() => writeAndThrow(world), 1)] } })
    await replayRace({ ...inTimer, order: ['a', 'clock', 'crash before write'] })
    const inSetup = race({
      setup: (race) => {
        open(race)
        if (race.life === 1) writeAndThrow(race)
        return race
      },
    })
    await replayRace({ ...inSetup, order: ['crash before write', 'a'] })
  })
})

describe('a message', () => {
  it('has the result of what it does, at once', async () => {
    const results: unknown[] = []
    await exploreRaces(
      race({
        crashes: false,
        actors: {
          a: [
            async ({ message }) => {
              const sent = message('one', () => results.push('at once'))
              results.push('next')
              results.push(await sent, await message('two', () => Promise.resolve('later')))
              const throws = (): never => {
                throw new Error('refused')
              }
              results.push(await message('three', throws).catch((error: unknown) => String(error)))
            },
          ],
        },
        numRuns: 1,
      }),
    )
    expect(results).toEqual(['at once', 'next', 1, 'later', 'Error: refused'])
  })
})

describe('a failure with crashes', () => {
  /** Stores a result under one name and then drops the other: a crash in between leaves both. */
  const lossy: Options = race({
    name: 'lossy',
    source: { module: './lossy.js', name: 'lossy' },
    actors: {
      a: [
        ({ store }) => store.write([row('a')]),
        ({ store }) => {
          void store.write([row('b')])
          void store.write([{ table: 'instances', remove: 'a' }])
        },
      ],
      b: [1, 2, 3].map(
        () =>
          ({ store }: Race<Disk>) =>
            store.write([row('c')]),
      ),
    },
    atEnd: { 'one of the two is stored': (world) => !stored(world).includes('a,b') },
    seed: 3,
  })

  it('shrinks to the one crash that is needed, and replays', async () => {
    const error = await failureOf(exploreRaces(lossy))
    const crashes = error.order.filter((name) => name.startsWith('crash'))
    expect(crashes).toHaveLength(1)
    const replayed = await failureOf(replayRace({ ...lossy, order: error.order }))
    expect(replayed).toMatchObject({ order: error.order, timeline: error.timeline })
    expect(error.regressionTest).toContain(`'${crashes[0] ?? ''}'`)
    expect(error.message).toContain('life 2 starts')
    const again = await failureOf(
      exploreRaces({ ...lossy, seed: error.seed ?? 0, path: error.path ?? '', endOnFailure: true }),
    )
    expect(again.order).toEqual(error.order)
  })

  it('names what each write holds in its timeline', async () => {
    const { timeline } = await failureOf(exploreRaces(lossy))
    expect(timeline).toContain('instances with b')
    const { timeline: long } = await replayRace({
      ...race({ actors: { a: [({ store }) => store.write(['1', '2', '3', '4', '5', '6', '7'].map(row))] } }),
      order: ['a'],
    })
    expect(long.replaceAll(/\s+/gu, ' ')).toContain('instances with 5; 2 more')
  })

  it('is the shortest in exhaustive mode, which runs an order once', async () => {
    const seen = new Set<string>()
    const error = await failureOf(exploreRaces({ ...lossy, mode: 'exhaustive', crashes: 1, seed: undefined as never }))
    expect(error.order.filter((name) => name.startsWith('crash'))).toHaveLength(1)
    expect(error.failed).toBeGreaterThan(1)
    seen.add(error.order.join())
    expect(error.runs).toBeGreaterThan(error.failed)
  })

  it('is shortened by name', async () => {
    const failing = race({
      actors: { a: [({ store }) => store.write([row('x')])], b: [() => undefined, () => undefined] },
      setup: (race) => {
        race.disk.log.push(...race.store.open().instances.map(({ id }) => id))
        return race
      },
      invariants: { 'no life finds anything': ({ disk }) => disk.log.length === 0 },
    })
    const run = (names: readonly string[]): Promise<RaceRun> => runRace(failing, new FixedOrder(names), undefined)
    const long = await run(['b', 'crash', 'b', 'a', 'crash after write'])
    expect(orderOf(long)).toHaveLength(5)
    const short = await shortenOrder(long, run)
    expect(orderOf(short)).toEqual(['a', 'crash after write'])
  })

  it('has the input of its run', async () => {
    const error = await failureOf(
      exploreRaces<Race<Disk>, number, Disk>({
        disk,
        setup: open,
        crashes: true,
        inputs: fc.nat(9),
        actors: (_, count) => ({ a: Array.from({ length: count + 1 }, () => () => undefined) }),
        atEnd: { 'one life': ({ life }) => life === 1 },
      }),
    )
    expect(error.input).toBe(error.order.filter((name) => name === 'a').length - 1)
  })

  it('is a changed race when a replay may not crash any more', async () => {
    const error = await failureOf(exploreRaces(lossy))
    const sound = replayRace({ ...lossy, crashes: false, order: error.order })
    await expect(sound).rejects.toMatchObject({ code: 'RACE_CHANGED' })
  })
})

it('takes the same orders with the same seed, byte for byte', async () => {
  const traceOf = async (): Promise<string> => {
    let trace = ''
    const add = ({ clock, disk, life, ...world }: Race<Disk>): void => {
      trace += `${clock.now()} ${life} ${stored({ ...world, clock, disk, life })} ${disk.log.join()}\n`
    }
    const step = ({ store, message, disk, pause, life }: Race<Disk>): Promise<void> => {
      void store.write([row(`${life}-${disk.log.length}`)])
      void message('append', () => disk.log.push(`life ${life}`))
      return pause('a pause')
    }
    await exploreRaces(
      race({ actors: { a: [step, step], b: [step] }, invariants: { add }, atEnd: { add }, numRuns: 300, seed: 11 }),
    )
    return trace
  }
  const trace = await traceOf()
  expect(trace.length).toBeGreaterThan(10_000)
  expect(await traceOf()).toBe(trace)
})

describe('options', () => {
  it.each([
    [{ crashes: -1 }, 'options.crashes'],
    [{ crashes: 1.5 }, 'options.crashes'],
    [{ crashes: 'yes' as never }, 'options.crashes'],
    [{ disk: {} as never }, 'options.disk'],
  ])('%o names the field', async (options, field) => {
    await expect(exploreRaces(race(options))).rejects.toMatchObject({ code: 'INVALID_INPUT', field })
  })

  it('keeps the name of a crash for crashes', async () => {
    const actors = { crash: [() => undefined] }
    await expect(exploreRaces(race({ actors }))).rejects.toThrow("a name other than '' or 'clock' or 'crash'")
    await exploreRaces(race({ actors, crashes: false }))
  })

  it.each(['random', 'exhaustive'] as const)('refuse a disk that cannot be copied, mode %s', async (mode) => {
    const notData = { log: [() => undefined] } as unknown as Disk
    const message = 'data that structuredClone can copy'
    await expect(exploreRaces(race({ disk: () => notData, mode }))).rejects.toThrow(message)
    const spoil = ({ disk }: Race<Disk>): void => void Object.assign(disk, notData)
    await expect(exploreRaces(race({ actors: { a: [spoil] }, mode }))).rejects.toThrow(message)
  })

  it('give each run a disk of its own', async () => {
    const shared = disk()
    await exploreRaces(race({ disk: () => shared, actors: { a: [({ disk }) => disk.log.push('x')] } }))
    expect(shared.log).toEqual([])
  })
})
