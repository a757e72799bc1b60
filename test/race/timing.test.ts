/** When deliveries start (A6): the trigger against a model of its timing. */
import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { deliveryTiming } from './timing.property.js'

it('A6: deliveries start when they are due, to the millisecond, share what ends together, and back off', async () => {
  await checkProperty(deliveryTiming.name, deliveryTiming.create(createSubject()))
})
