import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { hostileCallbacksProperty } from './hostile-callbacks.property.js'

it('A6, A9: callbacks that do not answer hold up no other owner, end with a limit, and leave nothing', async () => {
  await checkProperty('hostile callbacks', hostileCallbacksProperty(), { numRuns: 100 })
})
