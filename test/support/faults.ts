/**
 * `npm run faults`: breaks the subject in every planted way and expects the property that the fault names to fail, and
 * to hold for the real thing. Fails when a fault is missed or an invariant has none.
 *
 * FC_SEED      another seed; the same for all
 * FAULT        only the faults of this invariant, or whose name contains this
 * FAULT_SHOW   also prints the counterexamples
 */
import fc from 'fast-check'
import { deliveryFaults } from '../race/delivery-faults.js'
import { registryFaults, type PlantedFault, type SubjectProperty } from './planted-faults.js'
import { givenSeed } from './property.js'
import { createSubject } from './subject.js'

const invariants = ['A1', 'A2', 'A3', 'A4', 'A5', 'A6', 'A7', 'A8', 'A9', 'A10'] as const
const seed = givenSeed ?? 20_260_101
const soundRuns = 150
const defaultMaxRuns = 2000

const only = process.env['FAULT'] ?? ''
const all: readonly PlantedFault[] = [...registryFaults, ...deliveryFaults]
const faults = all.filter(({ name, invariant }) => only === '' || invariant === only || name.includes(only))
const started = performance.now()
const problems: string[] = []

for (const property of new Set(faults.map((fault) => fault.property))) await expectSound(property)
for (const fault of faults) await expectCaught(fault)
for (const invariant of invariants) {
  if (!all.some((fault) => fault.invariant === invariant)) problems.push(`${invariant} has no planted fault`)
}
const names = all.map(({ name }) => name)
for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
  problems.push(`two faults are called ${name}`)
}

for (const problem of problems) console.error(`faults: ${problem}`)
const seconds = ((performance.now() - started) / 1000).toFixed(1)
console.log(`faults: ${faults.length} planted, ${problems.length} problems, seed ${seed}, ${seconds} s`)
process.exit(problems.length > 0 ? 1 : 0)

async function expectSound(property: SubjectProperty): Promise<void> {
  const details = await fc.check(property.create(createSubject()), { seed, numRuns: soundRuns, endOnFailure: true })
  if (!details.failed) {
    console.log(`holds       ${property.name} (${soundRuns} runs)`)
    return
  }
  console.log(`BROKEN      ${property.name}`)
  problems.push(`${property.name} fails without a fault:\n${await fc.asyncDefaultReportMessage(details)}`)
}

async function expectCaught(fault: PlantedFault): Promise<void> {
  const { name, invariant, property, maxRuns = defaultMaxRuns } = fault
  const details = await fc.check(property.create(createSubject(fault)), { seed, numRuns: maxRuns, endOnFailure: true })
  if (details.failed) {
    console.log(`caught  ${invariant.padEnd(3)} ${name} by ${property.name} after ${details.numRuns} runs`)
    if (process.env['FAULT_SHOW'] !== undefined) console.log(await fc.asyncDefaultReportMessage(details))
  } else {
    console.log(`MISSED  ${invariant.padEnd(3)} ${name} by ${property.name} in ${maxRuns} runs: ${fault.description}`)
    problems.push(`${name} was missed`)
  }
}
