import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { pageProperty } from './page.property.js'

it('G1, G2, G3, G4: whatever happens, each reader has what there is, and nobody else has anything', () =>
  checkProperty('page', pageProperty()))
