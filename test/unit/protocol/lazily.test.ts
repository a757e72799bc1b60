/** Values that are created on first use. */
import { expect, it, vi } from 'vitest'
import { lazily } from '../../../src/protocol/lazily.js'

it.each([
  ['a value', {}],
  ['nothing', undefined],
])('makes %s when it is first asked for, and once', (_what, value) => {
  const make = vi.fn(() => value)
  const get = lazily(make)
  expect(make).not.toHaveBeenCalled()
  expect([get(), get()]).toEqual([value, value])
  expect(make).toHaveBeenCalledOnce()
})
