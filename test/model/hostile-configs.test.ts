import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { hostileConfigsProperty } from './hostile-configs.property.js'

it('F13: a configuration of any content is read, or refused with its field, what it has and what is expected', async () => {
  await checkProperty('hostile configurations', hostileConfigsProperty(), { numRuns: 500 })
})
