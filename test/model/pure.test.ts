/** The small parts of the package, each against its model. */
import { describe, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { binaryHeapProperty } from './binary-heap.property.js'
import { inProcessEngineProperty } from './in-process-engine.property.js'
import { longTimeoutProperty } from './long-timeout.property.js'
import { outputLogProperty, readOnProperty } from './output-log.property.js'
import { faithfulProperty, frozenProperty } from './plain-data.property.js'
import { restoreProperty } from './restore.property.js'
import { shortIdsProperty } from './short-ids.property.js'

describe('the small parts, against their models', () => {
  it('the heap gives back what it was given in order', () => checkProperty('binary heap', binaryHeapProperty()))

  it('a long timer fires once, at its time, unless it was taken back', () =>
    checkProperty('long timeout', longTimeoutProperty()))

  it('the output log keeps the last bytes and tells of the rest', () =>
    checkProperty('output log', outputLogProperty()))

  it('who reads the output log on from its cursor misses nothing', () => checkProperty('read on', readOnProperty()))

  it('a short id names one task, and is no longer than it must be', () =>
    checkProperty('short ids', shortIdsProperty()))

  it('A8: a copy of anything is frozen to the ground and can be written as JSON', () =>
    checkProperty('frozen copies', frozenProperty()))

  it('JSON data is copied without a difference', () => checkProperty('faithful copies', faithfulProperty()))

  it('A5: a restored registry owes what it owed, has lost what ran, and goes on from there', () =>
    checkProperty('restore', restoreProperty()))

  it('A2: the in-process engine settles every run once and is not hurt by abort listeners', () =>
    checkProperty('in-process engine', inProcessEngineProperty()))
})
