/** The second half of `npm run faults`: breaks the lanes in every planted way and expects the property to notice each. */
import fc from 'fast-check'
import { laneFaults } from '../race/lane-faults.js'
import { lanesProperty } from '../race/lanes.property.js'

const seed = 20_260_101
const problems: string[] = []
const sound = await fc.check(lanesProperty(), { seed, numRuns: 150, endOnFailure: true })
if (sound.failed) problems.push(`lanes fails without a fault: ${String(sound.errorInstance)}`)
else console.log('holds       lanes (150 runs)')
for (const { name, invariant, description, create } of laneFaults) {
  const details = await fc.check(lanesProperty(create), { seed, numRuns: 2000, endOnFailure: true })
  if (details.failed) console.log(`caught  ${invariant.padEnd(3)} ${name} by lanes after ${details.numRuns} runs`)
  else problems.push(`${name} was missed: ${description}`)
}
for (const problem of problems) console.error(`faults: ${problem}`)
console.log(`faults: ${laneFaults.length} planted in the lanes, ${problems.length} problems, seed ${seed}`)
process.exit(problems.length > 0 ? 1 : 0)
