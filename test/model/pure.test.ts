/** Small modules of the package, each against its model. */
import { describe, it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { binaryHeapProperty } from './binary-heap.property.js'
import { inProcessEngineProperty } from './in-process-engine.property.js'
import { longTimeoutProperty } from './long-timeout.property.js'
import { outputLogProperty, readOnProperty } from './output-log.property.js'
import { faithfulProperty, frozenProperty } from './plain-data.property.js'
import { restoreProperty } from './restore.property.js'
import { shortIdsProperty } from './short-ids.property.js'

describe('small modules, against their models', () => {
  it('the heap returns its items in order', () => checkProperty('binary heap', binaryHeapProperty()))

  it('a long timer runs once, at its time, unless it is cleared', () =>
    checkProperty('long timeout', longTimeoutProperty()))

  it('the output log keeps the last bytes and counts the rest', () => checkProperty('output log', outputLogProperty()))

  it('reading the output log from cursor to cursor misses nothing', () => checkProperty('read on', readOnProperty()))

  it('a short id identifies one task, and is as short as possible', () =>
    checkProperty('short ids', shortIdsProperty()))

  it('A8: a copy of any value is deeply frozen and can be written as JSON', () =>
    checkProperty('frozen copies', frozenProperty()))

  it('a copy of JSON data is equal', () => checkProperty('faithful copies', faithfulProperty()))

  it('A5: a restored registry owes what it owed, has failed what ran, and continues from there', () =>
    checkProperty('restore', restoreProperty()))

  it('A2: the in-process engine settles every run once, and isolates abort listeners', () =>
    checkProperty('in-process engine', inProcessEngineProperty()))
})
