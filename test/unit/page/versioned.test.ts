// What has changed since a version, at the limits of what is remembered.
import { expect, it } from 'vitest'
import { Versioned, Versions } from '../../../src/page/versioned.js'

it('a reader has each change once, in its present state, and what was added again is not removed', () => {
  const versions = new Versions()
  const items = new Versioned<string>(versions)
  items.add('a', 'A')
  items.add('b', 'B')
  const before = versions.last
  expect(items.since(before)).toEqual({ changed: [], removed: [] })
  items.touch('b')
  items.touch('a')
  items.touch('b')
  items.add('c', 'C')
  items.remove('c')
  items.remove('unknown')
  items.touch('unknown')
  expect(items.since(before)).toEqual({ changed: ['A', 'B'], removed: ['c'] })
  items.add('c', 'C2')
  expect(items.since(before)).toEqual({ changed: ['A', 'B', 'C2'], removed: [] })
  expect(items.since(0)).toEqual({ changed: ['A', 'B', 'C2'], removed: [] })
  expect([items.size, items.versionOf('c'), items.versionOf('unknown')]).toEqual([3, versions.last, 0])
})

it('the last removals are remembered, and a reader of before them is told to begin again', () => {
  const versions = new Versions()
  const items = new Versioned<number>(versions, 2)
  const removedAt: number[] = []
  for (let at = 0; at < 5; at += 1) {
    items.add(`k${at}`, at)
    items.remove(`k${at}`)
    removedAt.push(versions.last)
  }
  // Forgotten in one go, when there are more than twice as many.
  expect(items.since((removedAt[2] ?? 0) - 1)).toBeUndefined()
  expect(items.since(removedAt[2] ?? 0)).toEqual({ changed: [], removed: ['k3', 'k4'] })
  items.add('k3', 3)
  items.remove('k5')
  expect(items.since(removedAt[2] ?? 0)).toEqual({ changed: [3], removed: ['k4'] })
})

it('what was added again takes no room of the removals', () => {
  const versions = new Versions()
  const items = new Versioned<number>(versions)
  // Each time as much as may be remembered.
  const id = 'x'.repeat(3 * 1024 * 1024)
  for (let at = 0; at < 10; at += 1) {
    items.add(id, at)
    items.remove(id)
  }
  items.add('y', 1)
  items.remove('y')
  expect(items.since(0)).toEqual({ changed: [], removed: [id, 'y'] })
})

it('changes of several collections have one order', () => {
  const versions = new Versions()
  const [one, other] = [new Versioned<string>(versions), new Versioned<string>(versions)]
  one.add('a', 'A')
  other.add('b', 'B')
  const { last } = versions
  for (let at = 0; at < 5000; at += 1) one.touch('a')
  expect([one.since(last), other.since(last)]).toEqual([
    { changed: ['A'], removed: [] },
    { changed: [], removed: [] },
  ])
  expect(one.since(versions.last)).toEqual({ changed: [], removed: [] })
})
