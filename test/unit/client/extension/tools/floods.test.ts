/** When a page makes more events than can be handled. */
import { expect, it } from 'vitest'
import type { DebuggeeEvent } from '../../../../../src/client/extension/debuggee.js'
import { createFloods } from '../../../../../src/client/extension/tools/floods.js'

function setUp() {
  const seen: string[] = []
  let now = 0
  const floods = createFloods({
    onFlood: (domain, sessionId = 'tab') => seen.push(`${domain} of ${sessionId}`),
    onEndless: () => seen.push('endless'),
    now: () => now,
  })
  return {
    seen,
    floods,
    wait: (ms: number) => void (now += ms),
    /** Makes events. Returns how many of them were left alone. */
    make: (method: string, count: number, params: object = {}, sessionId?: string): number => {
      let left = 0
      for (let index = 0; index < count; index += 1) {
        if (floods.take({ method, params, sessionId } as DebuggeeEvent)) left += 1
      }
      return left
    },
  }
}

const logged = (timestamp: number, value = 'x') => ({ type: 'log', timestamp, args: [{ type: 'string', value }] })

it('disables a domain of a session once, and leaves its further events alone until it shows another page', () => {
  const { seen, make, floods } = setUp()
  expect(make('Runtime.consoleAPICalled', 2000, logged(5))).toBe(0)
  expect(make('Runtime.consoleAPICalled', 2000, logged(6), 'frame')).toBe(0)
  expect(make('Runtime.consoleAPICalled', 50, logged(7))).toBe(50)
  expect(seen).toEqual(['Runtime of tab'])
  expect(make('Log.entryAdded', 1, { entry: { timestamp: 7 } })).toBe(0)
  floods.forget(undefined)
  expect(make('Runtime.consoleAPICalled', 1, logged(7))).toBe(0)
})

it('counts by the time of the page: events of a flood are late', () => {
  const { seen, make, wait } = setUp()
  for (let second = 0; second < 5; second += 1) {
    make('Runtime.consoleAPICalled', 500, logged(100))
    wait(2000)
  }
  expect(seen).toEqual(['Runtime of tab'])
})

it('bears many events over a long time', () => {
  const { seen, make, wait } = setUp()
  for (let second = 0; second < 10; second += 1) {
    make('Runtime.consoleAPICalled', 1990, logged(second * 1001))
    make('Network.requestWillBeSent', 4900, { timestamp: second * 1.001 })
    make('Page.frameAttached', 900)
    wait(1001)
  }
  expect(seen).toEqual([])
})

it('counts what is long, and requests', () => {
  const { seen, make } = setUp()
  make('Runtime.consoleAPICalled', 5, logged(0, 'x'.repeat(1_000_000)))
  make('Network.requestWillBeSent', 5001, { timestamp: 1 })
  expect(seen).toEqual(['Runtime of tab', 'Network of tab'])
})

it('gives a page up that goes on after its console was disabled, once', () => {
  const { seen, make } = setUp()
  make('Runtime.consoleAPICalled', 2001, logged(0))
  expect(seen).toEqual(['Runtime of tab'])
  make('Runtime.consoleAPICalled', 2999, logged(5000))
  expect(seen).toEqual(['Runtime of tab'])
  make('Runtime.consoleAPICalled', 2000, logged(5000))
  expect(seen).toEqual(['Runtime of tab', 'endless'])
})

it('gives a page up that floods what the tools cannot do without', () => {
  const { seen, make } = setUp()
  make('Page.frameAttached', 5001)
  expect(seen).toEqual(['endless'])
})
