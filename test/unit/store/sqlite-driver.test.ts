/** Which SQLite is used: that of Node only where it is safe. */
import { expect, it, onTestFinished } from 'vitest'
import { needsSqlitePackage } from '../../../src/store/sqlite/driver.js'

it.each([
  [undefined, true],
  ['3.51.2', true],
  ['3.50.10', true],
  ['2.60.9', true],
  ['3.51.3', false],
  ['3.51.10', false],
  ['3.52.0', false],
  ['4.0.0', false],
])('with SQLite %s in Node, a store needs the package: %o', (sqlite, isNeeded) => {
  const { versions } = process
  onTestFinished(() => void Object.defineProperty(process, 'versions', { value: versions }))
  Object.defineProperty(process, 'versions', { value: { ...versions, sqlite } })
  expect(needsSqlitePackage()).toBe(isNeeded)
})
