/**
 * The second half of `npm run faults`: breaks the lanes, and what an agent submits to them, in every planted way and expects the
 * properties to notice each. Fails when a fault is missed or one of S1 to S10 has none.
 */
import fc from 'fast-check'
import { agentCommandsProperty } from '../model/agent-commands.property.js'
import { agentFaults } from '../model/agent-faults.js'
import { laneModelProperty } from '../model/lanes.property.js'
import { laneFaults } from '../race/lane-faults.js'
import { lanesProperty } from '../race/lanes.property.js'
import { givenSeed } from './property.js'

const seed = givenSeed ?? 20_260_101
const invariants = Array.from({ length: 10 }, (_, index) => `S${index + 1}`)
const started = performance.now()
const problems: string[] = []

await expectSound('lanes', lanesProperty())
await expectSound('lane model', laneModelProperty())
await expectSound('agent commands', agentCommandsProperty())
for (const fault of laneFaults) {
  const { create, isForModel = false } = fault
  if (!isForModel) await expectCaught(fault, 'lanes', lanesProperty(create))
  await expectCaught(fault, 'lane model', laneModelProperty({ createTaskManager: create }))
}
for (const fault of agentFaults) await expectCaught(fault, 'agent commands', agentCommandsProperty(fault.createTool))
const all = [...laneFaults, ...agentFaults]
for (const invariant of invariants) {
  if (!all.some((fault) => fault.invariant === invariant)) problems.push(`${invariant} has no planted fault`)
}

for (const problem of problems) console.error(`faults: ${problem}`)
const seconds = ((performance.now() - started) / 1000).toFixed(1)
console.log(`faults: ${all.length} planted in the lanes, ${problems.length} problems, seed ${seed}, ${seconds} s`)
process.exit(problems.length > 0 ? 1 : 0)

async function expectSound<T>(name: string, property: fc.IRawProperty<T>): Promise<void> {
  const details = await fc.check(property, { seed, numRuns: 150, endOnFailure: true })
  if (details.failed) problems.push(`${name} fails without a fault: ${String(details.errorInstance)}`)
  else console.log(`holds       ${name} (150 runs)`)
}

async function expectCaught<T>(
  { name, invariant, description }: (typeof laneFaults)[number] | (typeof agentFaults)[number],
  by: string,
  property: fc.IRawProperty<T>,
): Promise<void> {
  const details = await fc.check(property, { seed, numRuns: 2000, endOnFailure: true })
  if (details.failed) console.log(`caught  ${invariant.padEnd(3)} ${name} by ${by} after ${details.numRuns} runs`)
  else problems.push(`${name} was missed by ${by}: ${description}`)
}
