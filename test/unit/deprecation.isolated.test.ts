/** A warning of what goes away: once for each code, in Node and elsewhere. */
import { beforeEach, expect, it, vi } from 'vitest'

const platform = vi.hoisted(() => ({ isNode: true }))
vi.mock('../../src/node-builtins.js', async (load) => ({
  ...(await load<object>()),
  get isNode() {
    return platform.isNode
  },
}))

beforeEach(() => {
  vi.resetModules()
})

it('is a warning of the process in Node', async () => {
  platform.isNode = true
  const { deprecate } = await import('../../src/deprecation.js')
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  for (const code of ['A', 'B', 'A']) deprecate(code, `${code} goes`)
  expect(warn.mock.calls).toEqual([
    ['A goes', { type: 'DeprecationWarning', code: 'A' }],
    ['B goes', { type: 'DeprecationWarning', code: 'B' }],
  ])
  warn.mockRestore()
})

it('is a line of the console elsewhere', async () => {
  platform.isNode = false
  const { deprecate } = await import('../../src/deprecation.js')
  const warn = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  for (const code of ['A', 'A']) deprecate(code, `${code} goes`)
  expect(warn.mock.calls).toEqual([['A: A goes']])
  warn.mockRestore()
})
