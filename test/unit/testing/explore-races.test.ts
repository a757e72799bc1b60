/** Exploring races: how orders are counted, what a failure reports, and what happens to code that hangs. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { naiveTrigger, autoTrigger } from '../../../docs/examples/testing/lost-completion.js'
import {
  exploreRaces,
  RaceError,
  replayRace,
  type Race,
  type RaceGenerator,
  type RaceOptions,
} from 'agent-tasks/testing'

const steps = (count: number) => Array.from({ length: count }, () => () => undefined)

const failureOf = async (exploration: Promise<unknown>): Promise<RaceError> => {
  const error = await exploration.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

interface Account {
  balance: number
}

const withdraw: RaceGenerator<Account> = function* (account) {
  const has = account.balance > 0
  yield 'withdraws'
  if (has) account.balance -= 1
}

/** Both check the balance before either withdraws. */
const account: RaceOptions<Account> = {
  name: 'account',
  source: { module: './account.js', name: 'account' },
  setup: () => ({ balance: 1 }),
  actors: { alice: withdraw, bob: withdraw },
  invariants: { 'the account is not overdrawn': ({ balance }) => balance >= 0 },
}

/** Checks and withdraws in one step. */
const soundAccount: RaceOptions<Account> = {
  ...account,
  actors: Object.fromEntries(
    ['alice', 'bob'].map((name) => [name, [(one) => (one.balance -= one.balance > 0 ? 1 : 0)]]),
  ),
}

describe('exhaustive mode', () => {
  // (m + n)! / (m! n!)
  it.each([
    [0, 3, 1],
    [1, 1, 2],
    [2, 1, 3],
    [2, 2, 6],
    [3, 2, 10],
    [4, 3, 35],
    [4, 4, 70],
    [5, 4, 126],
  ])('runs every order of two actors with %i and %i steps: %i', async (m, n, count) => {
    const seen = new Set<string>()
    const summary = await exploreRaces({
      setup: () => ({ taken: '' }),
      actors: {
        a: steps(m).map(() => (world: { taken: string }) => void (world.taken += 'a')),
        b: steps(n).map(() => (world: { taken: string }) => void (world.taken += 'b')),
      },
      atEnd: { noted: ({ taken }) => void seen.add(taken) },
      mode: 'exhaustive',
    })
    expect(summary).toEqual({ mode: 'exhaustive', runs: count, orders: count })
    expect(seen.size).toBe(count)
  })

  it('runs every order of three actors, and of actors with a promise or a timer', async () => {
    const summary = await exploreRaces({
      setup: () => undefined,
      actors: { a: steps(3), b: steps(2), c: steps(2) },
      mode: 'exhaustive',
    })
    // 7! / (3! 2! 2!)
    expect(summary.orders).toBe(210)
    const pauses = await exploreRaces({
      setup: (race) => race,
      actors: { a: [(race) => race.pause('a')], b: [(race) => race.pause('b')] },
      mode: 'exhaustive',
    })
    // A step and the promise after it count as two steps.
    expect(pauses.orders).toBe(6)
    const timers = await exploreRaces({
      setup: (race) => race,
      actors: { a: [({ clock }) => void clock.setTimeout(() => undefined, 10)], b: steps(2) },
      mode: 'exhaustive',
    })
    // A step and the timer after it count as two steps.
    expect(timers.orders).toBe(6)
  })

  it('counts the orders that fail, and shows the shortest', async () => {
    const error = await failureOf(exploreRaces({ ...account, mode: 'exhaustive' }))
    expect(error.message).toContain('4 of 6 order(s) failed; the shortest of them:')
    expect(error).toMatchObject({ runs: 6, failed: 4, order: ['alice', 'bob', 'bob', 'alice'] })
    expect(await exploreRaces({ ...soundAccount, mode: 'exhaustive' })).toMatchObject({ orders: 2 })
    expect((await failureOf(exploreRaces({ ...account, mode: 'exhaustive', endOnFailure: true }))).failed).toBe(1)
  })

  it('fails when there are more orders than maxOrders', async () => {
    const actors = { a: steps(5), b: steps(5) }
    const exploration = exploreRaces({ setup: () => undefined, actors, mode: 'exhaustive', maxOrders: 251 })
    await expect(exploration).rejects.toThrow('more than maxOrders = 251 orders')
    const enough = await exploreRaces({ setup: () => undefined, actors, mode: 'exhaustive', maxOrders: 252 })
    expect(enough.orders).toBe(252)
  })
})

describe('random mode', () => {
  it('draws the same orders for a seed, and shrinks to few interruptions', async () => {
    const race = { setup: () => undefined, actors: { a: steps(8), b: steps(8) }, seed: 7 }
    const once = await exploreRaces(race)
    expect(once).toMatchObject({ mode: 'random', seed: 7 })
    expect(await exploreRaces(race)).toEqual(once)

    const ordered: string[] = []
    const late: RaceOptions<string[]> = {
      setup: () => [],
      actors: Object.fromEntries(
        ['a', 'b', 'c'].map((name) => [name, steps(6).map(() => (all) => void all.push(name))]),
      ),
      // Fails when a step of c comes before the last step of a.
      atEnd: { 'c is last': (all) => all.indexOf('c') > all.lastIndexOf('a') },
    }
    const { order } = await failureOf(exploreRaces({ ...late, seed: 1 }))
    ordered.push(...order)
    const switches = ordered.filter((name, at) => at > 0 && name !== ordered[at - 1]).length
    expect(switches).toBeLessThanOrEqual(3)
  })

  it('finds the same failure at its seed and path, and in its order', async () => {
    const error = await failureOf(exploreRaces(account))
    const { seed, path } = error as Required<Pick<RaceError, 'seed' | 'path'>>
    const again = await failureOf(exploreRaces({ ...account, seed, path, endOnFailure: true }))
    expect({ runs: again.runs, order: again.order }).toEqual({ runs: 1, order: error.order })
    expect((await failureOf(replayRace({ ...account, order: error.order }))).timeline).toBe(error.timeline)
  })

  it('replays an order that also names turns without a choice', async () => {
    const order = ['a', 'x', 'a', 'b']
    const race: RaceOptions<Race> = {
      setup: (race) => race,
      actors: { a: [(race) => void race.pause('x'), (race) => void race.pause('b')] },
    }
    expect(await replayRace({ ...race, order })).toMatchObject({ order, skipped: [] })
  })

  it('draws inputs, which shrink with the order and are part of the regression test', async () => {
    const race: RaceOptions<Account, { start: number }> = {
      ...account,
      setup: (_, { start }) => ({ balance: start }),
      inputs: fc.record({ start: fc.integer({ min: 0, max: 5 }) }),
      actors: { alice: withdraw, bob: withdraw },
    }
    const error = await failureOf(exploreRaces({ ...race, seed: 3 }))
    expect(error.regressionTest).toContain('input: {"start":1} })')
    await failureOf(replayRace({ ...race, order: error.order, input: { start: 1 } }))
    expect((await replayRace({ ...race, order: error.order, input: { start: 2 } })).order).toEqual(error.order)
  })
})

describe('a failure', () => {
  it('has a timeline: time, actor, step, what happened', async () => {
    const { timeline, message } = await failureOf(exploreRaces({ ...naiveTrigger, mode: 'exhaustive' }))
    expect(timeline).toBe(
      [
        '  time  actor              step         what happened',
        '  0 ms  worker             completes a  the agent has received a',
        '                                        -> true',
        '  0 ms  worker             completes b  -> true',
        '  0 ms  the model answers  goes on',
      ].join('\n'),
    )
    expect(message).toContain("'the agent has received both once' does not hold")
    expect(message).toContain(timeline)
  })

  it('has a regression test that fails with the bug and passes without it', async () => {
    const { regressionTest, message } = await failureOf(exploreRaces(naiveTrigger))
    expect(message).toContain(regressionTest)
    const [order, path] = await runTests(regressionTest, 'naiveTrigger', naiveTrigger)
    expect(order).toBeInstanceOf(RaceError)
    expect(path).toBeInstanceOf(RaceError)
    expect(await runTests(regressionTest, 'naiveTrigger', { ...autoTrigger })).toEqual(['passed', 'passed'])
    const exhaustive = await failureOf(exploreRaces({ ...account, mode: 'exhaustive' }))
    expect(await runTests(exhaustive.regressionTest, 'account', account)).toEqual([expect.any(RaceError)])
    expect(await runTests(exhaustive.regressionTest, 'account', soundAccount)).toEqual(['passed'])
  })

  it('does not hide the names that a replay skipped', async () => {
    const replay = await replayRace({ ...soundAccount, order: ['bob', 'alice', 'alice'] })
    expect(replay).toMatchObject({ order: ['bob', 'alice'], skipped: ['alice'] })
  })

  it('shows the beginning and the end of a run with too many events', async () => {
    const error = await failureOf(
      exploreRaces({
        setup: (race) => race,
        actors: { a: [async (race) => forever(() => race.pause('again'))] },
        endOnFailure: true,
      }),
    )
    expect(error.run.failure?.kind).toBe('loop')
    expect(error.timeline.split('\n').length).toBeLessThan(100)
    expect(error.message).toContain('the run has not ended after 1000 events')
  })
})

describe('a run that hangs, loops or throws fails', () => {
  const failOf = async (options: Partial<RaceOptions<Race>>) => {
    const { run } = await failureOf(exploreRaces<Race>({ setup: (race) => race, actors: { a: steps(1) }, ...options }))
    return `${run.failure?.kind ?? ''}: ${run.failure?.message ?? ''}`
  }

  it('with a step that never settles, and the promises it may wait for', async () => {
    const never = () => new Promise(() => undefined)
    expect(await failOf({ actors: { a: [{ label: 'waits', run: never }], b: steps(2) } })).toBe(
      "hang: never settled: step 'waits' of a. No actor, promise or timer can take a turn. Set timers on race.clock, and pass promises from outside the race to race.schedule.",
    )
    expect(await failOf({ actors: { a: [(_, race) => race.schedule(never(), 'the answer')] } })).toContain(
      "step 'step 1' of a, the promise 'the answer'",
    )
  })

  it('with a wait longer than the time limit', async () => {
    const poll = (_: unknown, { clock }: { clock: { setTimeout(run: () => void, ms: number): unknown } }) => {
      const again = () => void clock.setTimeout(again, 1000)
      again()
      return new Promise(() => undefined)
    }
    const race = { actors: { a: [poll] }, endOnFailure: true }
    expect(await failOf({ ...race, timeoutMs: 60_000 })).toContain('time: not done within 60000 ms')
    expect(await failOf(race)).toContain('loop: the run has not ended after 1000 events')
  })

  it('with a loop that polls the clock, or one that awaits settled promises', async () => {
    expect(
      await failOf({
        actors: {
          a: [
            (_, { clock }) => {
              while (clock.now() < 1) continue
            },
          ],
        },
      }),
    ).toContain('clock.now() was read 100000 times in one step')
    let isOver = false
    const spin = async () => {
      while (!isOver) await Promise.resolve()
    }
    expect(await failOf({ actors: { a: [spin] }, endOnFailure: true })).toContain('hang: never settled')
    isOver = true
  })

  it('with a setup, a check or a teardown that never settles', async () => {
    const never = () => new Promise<never>(() => undefined)
    expect(await failOf({ setup: never })).toContain('setup: setup never settled')
    expect(await failOf({ teardown: never })).toContain('teardown: teardown never settled')
    expect(await failOf({ invariants: { endless: never } })).toContain("the check 'endless' never settled")
  })

  it('with what a step, timer, check, setup or teardown threw', async () => {
    const fail = (): never => {
      throw new Error('on purpose')
    }
    expect(await failOf({ setup: fail })).toBe('setup: setup threw on purpose')
    expect(await failOf({ actors: { a: [fail] } })).toBe("step: step 'fail' of a threw on purpose")
    expect(await failOf({ actors: { a: [async () => fail()] } })).toContain('threw on purpose')
    expect(await failOf({ actors: { a: [(_, race) => void race.clock.setTimeout(fail, 5)] } })).toMatch(
      /^timer: timer of \S+ \(explore-races\.test\.ts:\d+\) threw on purpose$/u,
    )
    expect(await failOf({ invariants: { sound: async () => fail() } })).toContain(
      "invariant: 'sound' does not hold: on purpose",
    )
    expect(await failOf({ atEnd: { 'is done': () => false } })).toBe("end: 'is done' does not hold")
    expect(await failOf({ teardown: fail })).toBe('teardown: teardown threw on purpose')
  })

  it('with code that is not deterministic', async () => {
    let runs = 0
    const race = { setup: () => undefined, actors: { a: [() => void (runs += 1)], b: steps(3) } }
    const flaky = exploreRaces({ ...race, atEnd: { once: () => runs !== 3 }, endOnFailure: true })
    await expect(flaky).rejects.toThrow("failed ('once' does not hold), and then passed in the same order")
  })
})

describe('time', () => {
  it('is simulated, and setup and teardown get the timers and promises they wait for', async () => {
    const seen: number[] = []
    const summary = await exploreRaces({
      startTime: 5000,
      setup: async (race) => {
        await new Promise<void>((resolve) => race.clock.setTimeout(resolve, 3_000_000))
        await race.pause('ready')
        return race
      },
      actors: { a: [({ clock }) => new Promise<void>((resolve) => clock.setTimeout(resolve, 250))] },
      atEnd: { noted: ({ clock }) => void seen.push(clock.now()) },
      teardown: ({ clock }) => new Promise<void>((resolve) => clock.setTimeout(resolve, 1000)),
    })
    expect(summary.runs).toBe(1)
    expect(seen).toEqual([3_005_250])
  })
})

describe('invalid options', () => {
  const fine = { setup: () => undefined, actors: { a: steps(1) } }

  it.each([
    [{ ...fine, setup: 5 }, 'options.setup: got 5, expected a function that builds the world of a run.'],
    [{ ...fine, actors: undefined }, 'options.actors: got undefined, expected an object with the actors by name'],
    [{ ...fine, actors: {} }, 'actors: got {}, expected at least one actor.'],
    [{ ...fine, actors: { clock: steps(1) } }, "actors: got \"clock\", expected a name other than '' or 'clock'."],
    [{ ...fine, actors: { a: 'run' } }, 'actors.a: got "run", expected a list of steps, or a generator function.'],
    [{ ...fine, actors: { a: [1] } }, 'actors.a[0]: got 1, expected a function, or { label, run }.'],
    [{ ...fine, actors: () => ({ a: [1] }) }, 'actors.a[0]: got 1'],
    [{ ...fine, numRuns: 0 }, 'options.numRuns: got 0, expected a number >= 1.'],
    [{ ...fine, seed: 1.5 }, 'options.seed: got 1.5, expected an integer.'],
    [{ ...fine, mode: 'all' }, 'options.mode: got "all", expected one of random, exhaustive.'],
    [
      { ...fine, invariant: {} },
      'options.invariant: got "(not shown)", expected a known name; the nearest is invariants.',
    ],
    [{ ...fine, invariants: { a: 1 } }, 'options.invariants.a: got 1, expected a function.'],
    [{ ...fine, mode: 'exhaustive', seed: 1 }, 'options.seed: got 1, expected undefined in exhaustive mode'],
    [undefined, 'options: got undefined, expected an object.'],
  ])('%# are rejected: %s', async (options, message) => {
    await expect(exploreRaces(options as never)).rejects.toThrow(message)
  })

  it('are rejected by a replay too', async () => {
    await expect(replayRace({ ...fine, order: 'a' as never })).rejects.toThrow(
      'options.order: got "a", expected a list of names.',
    )
  })
})

async function forever(act: () => Promise<void>): Promise<never> {
  for (;;) await act()
}

/** Runs the text of a printed test file. `race` stands for what its import of `name` would be. */
async function runTests(text: string, name: string, race: unknown): Promise<unknown[]> {
  const body = text.replaceAll(/^import .*$/gm, '')
  const tests: (() => Promise<void>)[] = []
  const test = (_title: string, run: () => Promise<void>): void => void tests.push(run)
  // The text comes from this package.
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call
  new Function('test', 'exploreRaces', 'replayRace', name, body)(test, exploreRaces, replayRace, race)
  return Promise.all(
    tests.map((run) =>
      run().then(
        () => 'passed',
        (error: unknown) => error,
      ),
    ),
  )
}
