import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { keptTurnsProperty } from './kept-turns.property.js'

it('H8: across crashes each stored message has one turn, and each result is in one kept turn, unmarked', () =>
  checkProperty('kept turns', keptTurnsProperty()))
