/** Durable runs whose process dies at any write (F20). FC_NUM_RUNS=100000 explores as many. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { checkProperty, seed } from '../support/property.js'
import { stepFaults } from './durable-steps-faults.js'
import { durableStepsProperty } from './durable-steps.property.js'

it('F20: in any order, across crashes at any write, a stored step is not done again, and nothing is lost, told twice or left behind', () =>
  checkProperty('durable steps', durableStepsProperty()))

it.each(stepFaults)('F20: the fault $name is found, and shrunk to a few actions', async (fault) => {
  const details = await fc.check(durableStepsProperty(fault), { seed, numRuns: 2000 })
  expect(details.failed).toBe(true)
  const [script] = details.counterexample as [{ parts: unknown[]; actions: unknown[] }]
  expect(script.parts.length + script.actions.length).toBeLessThanOrEqual(8)
})
