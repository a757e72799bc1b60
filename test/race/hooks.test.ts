import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hookFaults } from './hook-faults.js'
import { hooksProperty } from './hooks.property.js'

it('F23: a result reaches the model through hooks, and again only with a mark', () => fc.assert(hooksProperty()))

describe('control: a session with a fault is found', () => {
  it.each(Object.entries(hookFaults))('%s', async (_name, create) => {
    const { failed } = await fc.check(hooksProperty(create), { numRuns: 2000, endOnFailure: true })
    expect(failed).toBe(true)
  })
})
