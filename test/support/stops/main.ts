/**
 * `npm run stops -- --rounds N [--seed S] [--fault F]`: stops a real host in each of five ways at N random moments, sometimes also the host that takes
 * over. What the next host finds and what the agent hears must be what a SIGKILL at the same moment would have left, apart from runs that complete
 * within their grace (promise K13). `judge.ts` says how that is known. `--fault` plants a fault, which must be found.
 */
import { parseArgs } from 'node:util'
import { buildHost, FAULTS, runWay, WAYS, type Row } from './rounds.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '20261129' },
    fault: { type: 'string' },
  },
})
const fault = FAULTS.find((name) => name === values.fault)
if (fault === undefined && values.fault !== undefined) throw new Error(`--fault: one of ${FAULTS.join(', ')}`)

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other)
  return Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0)
}

const HEAD = [
  'way',
  'rounds',
  'stops',
  'tasks',
  'ended in grace',
  'differences',
  'repeats',
  'losses',
  'left',
  'ms to end',
]
const line = (cells: readonly unknown[]): string =>
  cells.map((cell, at) => (at === 0 ? String(cell).padEnd(13) : String(cell).padStart(HEAD[at]!.length))).join('  ')

console.log(`stops: seed ${values.seed}`)
console.log(line(HEAD))
const [rounds, seed] = [Number(values.rounds), Number(values.seed)]
const hostFile = await buildHost()
await Promise.all(WAYS.map(async (way) => print(await runWay(way, { hostFile, rounds, seed, fault }))))

function print(row: Row): void {
  const faults = [row.differences, row.repeats, row.losses, row.left]
  const counts = faults.map(({ length }) => length)
  console.log(line([row.way, rounds, row.stops, row.tasks, row.inGrace, ...counts, median(row.times)]))
  for (const text of faults.flat().slice(0, 10)) console.log(`  ${text}`)
  if (faults.flat().length > 0) process.exitCode = 1
}
