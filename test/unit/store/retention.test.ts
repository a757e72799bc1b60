// What goes first, when, and what is left behind.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createManualClock, type ManualClock } from 'agent-tasks/testing'
import { Retention, type RetentionOptions } from '../../../src/store/history/retention.js'

interface Item {
  readonly name: string
}

const named = (name: string): Item => ({ name })

function keep(options: Omit<RetentionOptions<Item>, 'onDropped'> = {}) {
  const dropped: string[] = []
  const retention = new Retention<Item>({ ...options, onDropped: ({ name }) => dropped.push(name) })
  return { retention, dropped }
}

function keepFor(clock: ManualClock, ageMs: number, more: Omit<RetentionOptions<Item>, 'onDropped'> = {}) {
  return keep({
    ...more,
    sweep: { clock, everyMs: 1000, label: { name: 'sweep' }, isObsolete: (_item, age) => age >= ageMs },
  })
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}

describe('a retention', () => {
  it('drops the earliest items that are too many, and nothing before it is asked to', () => {
    const { retention, dropped } = keep({ maxCount: 2 })
    for (const name of ['a', 'b', 'c', 'd']) retention.add(named(name))
    expect(dropped).toEqual([])
    retention.trim()
    expect(dropped).toEqual(['a', 'b'])
    expect([retention.length, retention.count]).toEqual([2, 2])
  })

  it('counts an item as what its owner says', () => {
    const { retention, dropped } = keep({ maxCount: 10 })
    retention.add(named('a'), 0, 6)
    retention.add(named('b'), 0, 4)
    retention.trim()
    expect(dropped).toEqual([])
    retention.add(named('c'), 0, 1)
    retention.trim()
    expect(dropped).toEqual(['a'])
    expect(retention.count).toBe(5)
  })

  it('drops the earliest items that hold too much', () => {
    const { retention, dropped } = keep({ maxSize: 10 })
    retention.add(named('a'), 5)
    retention.add(named('b'), 5)
    retention.add(named('c'), 6)
    retention.trim()
    expect(dropped).toEqual(['a', 'b'])
    expect(retention.size).toBe(6)
  })

  it('counts what is held with the rest, and never drops it', () => {
    const { retention, dropped } = keep({ maxCount: 1, maxSize: 10 })
    retention.hold(20, 3)
    retention.add(named('a'), 1)
    retention.trim()
    expect(dropped).toEqual(['a'])
    expect([retention.count, retention.size]).toEqual([3, 20])
    retention.giveBack(20, 3)
    expect([retention.count, retention.size]).toEqual([0, 0])
  })

  it('makes room for what is taken, and takes nothing when there is too little', () => {
    const { retention, dropped } = keep({ maxSize: 10 })
    retention.hold(4)
    retention.add(named('a'), 3)
    retention.add(named('b'), 3)
    expect(retention.take(3)).toBe(true)
    expect([dropped, retention.size]).toEqual([['a'], 10])
    expect(retention.take(4)).toBe(false)
    expect([dropped, retention.size]).toEqual([['a', 'b'], 7])
  })

  it('drops an item that has become larger, and counts its new size', () => {
    const { retention, dropped } = keep({ maxSize: 10 })
    const a = retention.add(named('a'), 2)
    retention.add(named('b'), 5)
    retention.resize(a, 5)
    retention.trim()
    expect(dropped).toEqual([])
    retention.resize(a, 6)
    retention.trim()
    expect([dropped, retention.size]).toEqual([['a'], 5])
    retention.resize(a, 100)
    expect(retention.size).toBe(5)
  })

  it('does not drop what was removed, and counts it once', () => {
    const { retention, dropped } = keep({ maxCount: 1 })
    const a = retention.add(named('a'), 3)
    retention.add(named('b'), 4)
    retention.remove(a)
    retention.remove(a)
    retention.trim()
    expect(dropped).toEqual([])
    expect([retention.length, retention.count, retention.size]).toEqual([1, 1, 4])
  })

  it('lets an owner add an item while another one is dropped', () => {
    const dropped: string[] = []
    const retention: Retention<Item> = new Retention<Item>({
      maxCount: 1,
      onDropped: ({ name }) => {
        dropped.push(name)
        if (name === 'a') retention.add(named('again'))
      },
    })
    for (const name of ['a', 'b']) retention.add(named(name))
    retention.trim()
    expect(dropped).toEqual(['a', 'b'])
    expect(retention.length).toBe(1)
  })

  it('keeps nothing alive that was dropped or removed, and no place for it', async () => {
    const { retention } = keep({ maxCount: 3 })
    const refs = Array.from({ length: 40 }, (_, at) => {
      const item = named(`n${at}`)
      const place = retention.add(item)
      if (at % 4 === 0) retention.remove(place)
      retention.trim()
      return new WeakRef(item)
    })
    // A WeakRef keeps its target to the end of the job.
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    const alive = refs.flatMap((ref) => ref.deref()?.name ?? [])
    expect(alive).toEqual(['n37', 'n38', 'n39'])
    expect(retention.length).toBe(3)
  })

  it('agrees with a plain list', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), size: fc.nat(9) }),
      fc.record({ do: fc.constant('remove' as const), at: fc.nat(9) }),
      fc.record({ do: fc.constant('resize' as const), at: fc.nat(9), size: fc.nat(9) }),
      fc.record({ do: fc.constant('trim' as const) }),
    )
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 200 }),
        fc.nat(40),
        fc.integer({ min: 20, max: 60 }),
        (steps, most, max) => {
          const { retention, dropped } = keep({ maxCount: most, maxSize: max })
          const places: ReturnType<typeof retention.add>[] = []
          let kept: { name: string; size: number; place: number }[] = []
          const gone: string[] = []
          for (const [at, one] of steps.entries()) {
            if (one.do === 'add') {
              kept.push({ name: `n${at}`, size: one.size, place: places.length })
              places.push(retention.add(named(`n${at}`), one.size))
            } else if (one.do === 'trim') {
              retention.trim()
              while (kept.length > most || kept.reduce((sum, { size }) => sum + size, 0) > max) {
                const first = kept.shift()
                if (first === undefined) break
                gone.push(first.name)
              }
            } else {
              const found = kept[one.at]
              const place = found && places[found.place]
              if (found === undefined || place === undefined) continue
              if (one.do === 'resize') {
                found.size = one.size
                retention.resize(place, one.size)
              } else {
                kept = kept.filter((each) => each !== found)
                retention.remove(place)
              }
            }
            expect(dropped).toEqual(gone)
            expect(retention.length).toBe(kept.length)
            expect(retention.size).toBe(kept.reduce((sum, { size }) => sum + size, 0))
          }
        },
      ),
    )
  })
})

describe('a retention with a sweep', () => {
  it('drops what is too old at the next sweep, and leaves no timer when nothing is kept', () => {
    const clock = createManualClock()
    const { retention, dropped } = keepFor(clock, 1500)
    retention.add(named('a'))
    expect(clock.pending).toBe(0)
    retention.trim()
    clock.advance(1000)
    retention.add(named('b'))
    clock.advance(1000)
    expect(dropped).toEqual(['a'])
    expect(clock.pending).toBe(1)
    clock.advance(1000)
    expect(dropped).toEqual(['a', 'b'])
    expect(clock.pending).toBe(0)
  })

  it('has one timer, however much is added', () => {
    const clock = createManualClock()
    const { retention } = keepFor(clock, 10_000)
    for (let at = 0; at < 10; at += 1) {
      retention.add(named(`n${at}`))
      retention.sweep()
    }
    expect(clock.pending).toBe(1)
    retention.close()
  })

  it('takes the age that its owner says', () => {
    const clock = createManualClock()
    const { retention, dropped } = keepFor(clock, 1500)
    retention.add(named('a'), 0, 1, 1500)
    retention.add(named('b'), 0, 1, 1499)
    retention.sweep()
    expect(dropped).toEqual(['a'])
    retention.close()
  })

  it('drops by an age of the moment too, up to the first item that is younger', () => {
    const clock = createManualClock()
    const { retention, dropped } = keepFor(clock, 10_000)
    retention.add(named('a'))
    clock.advance(100)
    retention.add(named('b'))
    expect(retention.dropWhile((_item, ageMs) => ageMs > 99)).toBe(1)
    expect(dropped).toEqual(['a'])
  })

  it('leaves no timer after its end, and still trims', () => {
    const clock = createManualClock()
    const { retention, dropped } = keepFor(clock, 1500, { maxCount: 1 })
    retention.add(named('a'))
    retention.trim()
    retention.close()
    expect(clock.pending).toBe(0)
    retention.add(named('b'))
    retention.trim()
    expect(dropped).toEqual(['a'])
    expect(clock.pending).toBe(0)
  })
})
