/** The lanes in every order of events. */
import { describe, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { lanesProperty } from './lanes.property.js'

describe('lanes', () => {
  it('S1, S2, S3, S4, S5, S6, S7, S8: in every order of events, each task ends once, in its lane, in order', async () => {
    await checkProperty('lanes', lanesProperty())
  })
})
