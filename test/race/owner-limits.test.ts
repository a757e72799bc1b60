import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { ownerLimitsProperty } from './owner-limits.property.js'

it('H9: in any order, across crashes, no owner exceeds its limits, and none waits or loses a record because of another', () =>
  checkProperty('owner limits', ownerLimitsProperty()))
