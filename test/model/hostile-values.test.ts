import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { hostileValuesProperty } from './hostile-values.property.js'

it('A1: a task ends once, in bounded work, whatever value enters', async () => {
  await checkProperty('hostile values', hostileValuesProperty(), { numRuns: 60, endOnFailure: true })
})
