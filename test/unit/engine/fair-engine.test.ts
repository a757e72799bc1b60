/** Work yields to the event loop after ten milliseconds of other work. */
import { createManualClock } from 'agent-tasks/testing'
import { expect, it } from 'vitest'
import { createFairEngine } from '../../../src/engine/fair-engine.js'
import { createInProcessEngine } from '../../../src/engine/in-process.js'

function setUp() {
  const clock = createManualClock()
  const engine = createFairEngine(createInProcessEngine({ clock }), clock)
  const ran: string[] = []
  const start = (id: string, ms: number) =>
    engine.start({
      id,
      graceMs: 100,
      run: () => {
        ran.push(id)
        clock.advance(ms)
        return id
      },
    })
  const microtasks = async () => {
    for (let index = 0; index < 20; index += 1) await Promise.resolve()
  }
  return { clock, engine, ran, start, microtasks }
}

it('work that follows less than 10 ms of work runs at once, and the rest after a turn of the event loop', async () => {
  const { ran, start, microtasks } = setUp()
  const runs = ['a', 'b', 'c', 'd', 'e'].map((id) => start(id, 5))
  await microtasks()
  expect(ran).toEqual(['a', 'b'])
  const outcomes = await Promise.all(runs.map(({ settled }) => settled))
  expect(ran).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(outcomes).toEqual(ran.map((value) => ({ type: 'returned', value })))
})

it('a turn of the event loop begins the count anew, on the clock of the platform as well', async () => {
  const { ran, start, microtasks } = setUp()
  start('a', 9)
  await microtasks()
  await new Promise(setImmediate)
  const runs = ['b', 'c', 'd'].map((id) => start(id, 9))
  await microtasks()
  expect(ran).toEqual(['a', 'b', 'c'])
  await Promise.all(runs.map(({ settled }) => settled))
  expect(ran).toEqual(['a', 'b', 'c', 'd'])
  const platform = createFairEngine(createInProcessEngine())
  expect(await platform.start({ id: 'x', graceMs: 0, run: () => 'at once' }).settled).toMatchObject({
    value: 'at once',
  })
})

it('work that was aborted while it waited for its turn does not run', async () => {
  const { engine, clock, ran, start, microtasks } = setUp()
  const first = start('a', 10)
  const waiting = start('b', 0)
  const throwing = engine.start({ id: 'c', graceMs: 100, run: () => Promise.reject(new Error('no')) })
  await microtasks()
  waiting.abort('not any more')
  expect(await waiting.settled).toEqual({ type: 'threw', reason: 'not any more' })
  expect(await throwing.settled).toEqual({ type: 'threw', reason: new Error('no') })
  await first.settled
  expect([ran, clock.pending]).toEqual([['a'], 0])
})
