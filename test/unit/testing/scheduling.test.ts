/** For properties that do their own scheduling: orders, a scheduler that follows them, and scripts of racing actors. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRaceScheduler, exploreRaces, RaceOrder, raceOrders, raceScripts } from 'agent-tasks/testing'
import { OrderTree, RecordedChooser } from '../../../src/testing/order-tree.js'
import { chooserOf } from '../../../src/testing/race-order.js'

/** The sequence of the last turn goes on, and the others follow in the order in which they were scheduled. */
const calm = (): RaceOrder => new RaceOrder(0, 0)

describe('a race scheduler', () => {
  it('settles promises and calls as they would have settled, each in a turn of its own', async () => {
    const scheduler = createRaceScheduler(calm())
    const done: string[] = []
    const note = (name: string) => (value: unknown) => void done.push(`${name}: ${String(value)}`)
    scheduler.schedule(Promise.resolve('one'), 'first').then(note('first'), note('first'))
    scheduler.schedule(Promise.reject(new Error('two'))).then(note('second'), note('second'))
    const save = scheduler.scheduleFunction(function save(name: string) {
      return Promise.resolve(`saved ${name}`)
    })
    save('a').then(note('third'), note('third'))
    scheduler
      .scheduleFunction(() => Promise.resolve(4), 'named')()
      .then(note('fourth'), note('fourth'))
    await Promise.resolve()
    expect([scheduler.count(), done]).toEqual([4, []])
    expect(await scheduler.waitOne()).toBe(true)
    expect([scheduler.count(), done]).toEqual([3, ['first: one']])
    await scheduler.waitIdle()
    expect(done).toEqual(['first: one', 'second: Error: two', 'third: saved a', 'fourth: 4'])
    expect([scheduler.count(), await scheduler.waitOne()]).toEqual([0, false])
    expect(scheduler.toString()).toBe('1. first\n2. promise\n3. save\n4. named')
  })

  it('ends a sequence at the item that rejects, and continues the other sequences', async () => {
    const scheduler = createRaceScheduler(calm())
    const item = (label: string, end: () => Promise<unknown> = () => Promise.resolve()) => ({ label, builder: end })
    const faulty = scheduler.scheduleSequence([
      item('a'),
      item('b', () => Promise.reject(new Error('no'))),
      item('never'),
    ])
    const sound = scheduler.scheduleSequence([item('c'), item('d')])
    await scheduler.waitIdle()
    expect(await faulty.task).toEqual({ done: false, faulty: true })
    expect(await sound.task).toEqual({ done: true, faulty: false })
    expect(scheduler.toString()).toBe('1. a\n2. b\n3. c\n4. d')
  })
})

describe('an order', () => {
  it('is printed as the expression that makes it again', () => {
    const order = new RaceOrder(7, 3, new Set([0, 2]))
    expect(fc.stringify(order)).toBe('new RaceOrder(7, 3, new Set([0, 2]))')
    expect(fc.stringify(new RaceOrder(7))).toBe('new RaceOrder(7, Infinity)')
  })

  it('can be an example of a property, and shrinks like a drawn order', () => {
    const orders = raceOrders()
    expect([orders.canShrinkWithoutContext(new RaceOrder(7)), orders.canShrinkWithoutContext('7')]).toEqual([
      true,
      false,
    ])
    const details = fc.check(
      fc.property(orders, (order) => {
        const chooser = chooserOf(order)
        return chooser.choose(['a', 'b']) + chooser.choose(['a', 'b']) === 0
      }),
      { examples: [[new RaceOrder(1, 2)]], numRuns: 200, seed: 1 },
    )
    expect(details.failed).toBe(true)
  })

  it('is run once, depth first, until all were run', () => {
    const all = new OrderTree()
    const taken: string[] = []
    while (!all.isComplete) {
      const chooser = new RecordedChooser(all.next())
      // After b there is nothing to choose.
      if (chooser.choose(['a', 'b']) === 0) chooser.choose(['b', 'c', 'd'])
      all.add(chooser.choices)
      taken.push(chooser.choices.map((choice) => choice.taken).join(''))
    }
    expect(taken).toEqual(['00', '01', '02', '1'])
    expect(all.size).toBe(4)
    expect(all.has({ choose: () => 0, crash: () => 0 })).toBe(true)
  })

  it('has crashes, which it may lose one by one while it shrinks', () => {
    const points = ['crash before write', 'crash after write']
    const crashesOf = (order: RaceOrder, from = 0): string => {
      const chooser = chooserOf(order)
      return Array.from({ length: 16 }, (_, at) => chooser.crash(points, `write #${at + from}`)).join('')
    }
    const drawn = fc.sample(raceOrders(), { numRuns: 40, seed: 1 })
    const counts = drawn.map((order) => crashesOf(order).replaceAll('0', '').length)
    expect([Math.min(...counts), Math.max(...counts) > 5]).toEqual([0, true])
    expect(drawn.map((order) => crashesOf(order)).join('')).toMatch(/1.*2|2.*1/u)
    // A site that goes away does not change the others.
    for (const order of drawn) expect(crashesOf(order, 1).slice(0, -1)).toBe(crashesOf(order).slice(1))

    const details = fc.check(
      fc.property(raceOrders(), (order) => !crashesOf(order).includes('2')),
      { seed: 1, numRuns: 200 },
    )
    const [shortest] = details.counterexample ?? []
    expect(crashesOf(shortest!).replaceAll('0', '')).toBe('2')
    expect(fc.stringify(shortest)).toMatch(/^new RaceOrder\(\d+, 0, new Set\(\[\]\), new Set\(\[[\d, ]+\]\)\)$/u)
  })

  it('that leads to other choices than before is an error', () => {
    const all = new OrderTree()
    const take = (...offers: string[][]): readonly number[] => {
      const chooser = new RecordedChooser(all.next())
      for (const names of offers) chooser.choose(names)
      all.add(chooser.choices)
      return chooser.choices.map(({ taken }) => taken)
    }
    expect(take(['a', 'b'], ['b', 'c', 'd'])).toEqual([0, 0])
    expect(() => all.next().choose(['a', 'b', 'c'])).toThrow(
      expect.objectContaining({
        code: 'RACE_NOT_DETERMINISTIC',
        message: expect.stringMatching(/^the same order led to 2 possibilities before and to 3 now\. /) as string,
      }) as Error,
    )
  })
})

describe('scripts', () => {
  it('have every named actor, up to maxOthers others, and at least one step for each', () => {
    const named = raceScripts(fc.constantFrom('submit', 'cancel'), { actors: ['alice'], maxOthers: 2, maxSteps: 3 })
    const scripts = fc.sample(named, { numRuns: 200, seed: 1 })
    for (const script of scripts) {
      expect(Object.keys(script)[0]).toBe('alice')
      expect(Object.keys(script).slice(1)).toEqual(['actor 1', 'actor 2'].slice(0, Object.keys(script).length - 1))
      for (const steps of Object.values(script)) {
        expect(steps.length).toBeGreaterThan(0)
        expect(steps.length).toBeLessThanOrEqual(3)
      }
    }
    expect(new Set(scripts.map((script) => Object.keys(script).length))).toEqual(new Set([1, 2, 3]))
    for (const script of fc.sample(raceScripts(fc.constant(0)), { numRuns: 100, seed: 1 })) {
      expect(Object.keys(script).length).toBeGreaterThan(0)
    }
  })
})

describe('a race', () => {
  it('decides when promises and calls settle, and counts the timers that are set', async () => {
    const ends = new Set<string>()
    const pending = new Set<number>()
    await exploreRaces({
      mode: 'exhaustive',
      setup: (race) => ({ done: [] as string[], race }),
      actors: {
        asks: [
          async (world) => {
            const read = world.race.scheduleFunction((name: string) => Promise.resolve(`read ${name}`))
            const write = world.race.scheduleFunction(function write() {
              return Promise.reject(new Error('written'))
            }, 'writes')
            await Promise.all([
              read('a').then((text) => world.done.push(text)),
              write().catch((error: unknown) => world.done.push((error as Error).message)),
            ])
          },
        ],
        waits: [
          ({ race }) => {
            race.clock.setTimeout(() => undefined, 10)
            pending.add(race.clock.pending)
          },
        ],
      },
      atEnd: {
        'both have ended': async ({ done }) => {
          ends.add(done.join(', '))
          return Promise.resolve(done.length === 2)
        },
      },
    })
    expect([...ends].sort()).toEqual(['read a, written', 'written, read a'])
    expect(pending).toEqual(new Set([1]))
  })

  it('runs generators that await between their steps', async () => {
    const { orders } = await exploreRaces({
      mode: 'exhaustive',
      setup: () => ({ steps: [] as string[] }),
      actors: {
        one: async function* (world) {
          world.steps.push('starts')
          yield 'saves'
          world.steps.push(await Promise.resolve('saved'))
        },
        other: [() => undefined],
      },
      atEnd: { 'it has gone to its end': ({ steps }) => steps.join() === 'starts,saved' },
    })
    expect(orders).toBeGreaterThan(1)
  })

  it('fails when a timer of its setup throws', async () => {
    const exploration = exploreRaces({
      numRuns: 1,
      setup: ({ clock }) =>
        new Promise<object>(() => {
          clock.setTimeout(() => {
            throw new Error('in the timer')
          }, 5)
        }),
      actors: { one: [() => undefined] },
    })
    await expect(exploration).rejects.toThrow(/^race: timer of scheduling\.test\.ts:\d+ threw in the timer$/mu)
  })

  it.each([
    [{ invariants: 5 }, 'options.invariants: got 5, expected an object with functions by name.'],
    [{ atEnd: { one: 5 } }, 'options.atEnd.one: got 5, expected a function.'],
    [{ actors: () => 5 }, 'actors: got 5, expected an object with the actors by name.'],
  ])('rejects %j', async (options, message) => {
    const race = { setup: () => ({}), actors: { one: [() => undefined] }, numRuns: 1, ...options }
    await expect(exploreRaces(race as never)).rejects.toThrow(message)
  })
})
