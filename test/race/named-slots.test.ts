import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { namedSlotsProperty } from './named-slots.property.js'

it('F18: in any order, across crashes, no key, place or rate is exceeded, and nothing waits that could start', () =>
  checkProperty('named slots', namedSlotsProperty()))
