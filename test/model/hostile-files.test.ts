import { describe, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { hostileFilesProperty } from './hostile-files.property.js'

describe.runIf(process.platform === 'linux')('hostile files beside a store', () => {
  it('K8, K11: whatever stands in their place, a host starts in time or says which, and signals no one', async () => {
    await checkProperty('hostile files', hostileFilesProperty(), { numRuns: 30, endOnFailure: true })
  })
})
