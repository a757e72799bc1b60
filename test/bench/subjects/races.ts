/**
 * Orderings of races, as the race tests explore them. The seam for the race kit: whatever explores orderings is called here, `times`
 * orderings a run.
 */
import fc from 'fast-check'
import { delivery } from '../../race/delivery.property.js'
import { lanesProperty } from '../../race/lanes.property.js'
import { createSubject } from '../../support/subject.js'
import type { Subject } from '../subject.js'

async function explore(property: fc.IRawProperty<unknown>, times: number): Promise<undefined> {
  const details = await fc.check(property, { numRuns: times })
  if (details.failed) throw new Error((await fc.asyncDefaultReportMessage(details)) ?? 'a race failed')
  return undefined
}

/** Deliveries that race with everything a host can do. */
export function deliveryRaces(): Subject {
  const property = delivery.create(createSubject())
  return { run: (times) => explore(property, times) }
}

/** Submits, cancels, results and lost instances. */
export function laneRaces(): Subject {
  const property = lanesProperty()
  return { run: (times) => explore(property, times) }
}
