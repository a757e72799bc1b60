/** A10: what one task's life costs. */
import { describe, expect, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { countVisits } from '../support/visits.js'
import { costProperty } from './cost.property.js'

describe('the cost of one life', () => {
  it('A10: visits as many elements, reads the clock as often and tells as much in a crowd as alone', async () => {
    await checkProperty('cost', costProperty(createSubject()), { numRuns: 50 })
  })
})

describe('the measure', () => {
  const array = Array.from({ length: 50 }, (_, n) => n)
  const set = new Set(array)
  const map = new Map(array.entries())

  it.each<[string, () => unknown]>([
    ['spreading an array', () => [...array]],
    ['spreading a set', () => [...set]],
    ['making an array from a map', () => Array.from(map.values(), (value) => value)],
    ['walking through a map', () => map.forEach(() => undefined)],
    ['filtering an array', () => array.filter(Boolean)],
    ['sorting an array', () => array.sort()],
    ['a loop over a map', () => Math.max(...map.keys())],
  ])('counts the elements of %s', (_what, walk) => {
    expect(countVisits(() => void walk())).toBeGreaterThanOrEqual(50)
    expect(countVisits(() => undefined)).toBe(0)
  })
})
