/**
 * `npm run soak -- --minutes 10`: both systems with random work, cancels, disconnects and refused deliveries. At the end every task must
 * have ended, the heap must not have grown, and no handle may be open. `--seed` repeats the choices, but not the timing.
 * Exits with 1 when an invariant was violated.
 */
import { parseArgs } from 'node:util'
import { formatNumber } from '../report.js'
import { regression } from '../statistics.js'
import { createAsyncSide } from './async-side.js'
import { createCommandSide } from './command-side.js'
import { createFindings } from './findings.js'
import { createRandom } from './random.js'
import { holdsWithin, pause } from './side.js'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '1' }, seed: { type: 'string' } } })
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new RangeError(`--minutes: got ${values.minutes}, expected a number above 0`)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const { gc } = globalThis
if (gc === undefined) throw new Error('run with --expose-gc')

/** The share of the run before the first heap sample, in which code is compiled and caches are filled. */
const WARM_SHARE = 0.25
/** Growth over the whole run that counts as noise, as a share of the heap. */
const NOISE_SHARE = 0.02
const STEP_MS = 4

const random = createRandom(seed)
const findings = createFindings()
process.on('uncaughtException', (error) => findings.check(false, 'uncaught', () => error.stack ?? error.message))
process.on('unhandledRejection', (reason) => findings.check(false, 'unhandled', () => String(reason)))

console.log(`soak: ${minutes} minutes, seed ${seed}`)
const sides = [createAsyncSide(random, findings), await createCommandSide(random, findings)]
const begun = performance.now()
const totalMs = minutes * 60_000
const sampleMs = Math.min(5000, totalMs / 24)
const points: [number, number][] = []
let sampleAt = totalMs * WARM_SHARE
for (let at = 0; at < totalMs; at = performance.now() - begun) {
  for (const side of sides) await side.step()
  await pause(STEP_MS)
  if (at >= sampleAt) {
    sampleAt += sampleMs
    gc()
    points.push([at / 60_000, process.memoryUsage().heapUsed])
  }
}
for (const side of sides) await side.finish()

const { slope, error } = regression(points)
const mean = points.reduce((sum, [, bytes]) => sum + bytes, 0) / points.length
const grown = (slope - 2 * error) * minutes
// In a shorter run the retained tasks are still being filled.
findings.check(
  minutes < 2 || grown < mean * NOISE_SHARE,
  'heap',
  () => `grew by at least ${formatNumber(grown / 1024)} KiB`,
)

/** The resources of the console, which every program has. */
const CONSOLE = ['TTYWrap', 'PipeWrap', 'FSReqCallback']
const open = (): string[] => process.getActiveResourcesInfo().filter((resource) => !CONSOLE.includes(resource))
// `holdsWithin` has a timer itself.
const isClosed = await holdsWithin(10_000, () => open().filter((resource) => resource !== 'Timeout').length === 0)
await pause(1000)
const left = open()
findings.check(isClosed && left.length === 0, 'A9', () => `still open: ${left.join(', ')}`)

for (const [what, count] of [...findings.counts].sort()) {
  console.log(`${count.toLocaleString('en-GB').padStart(12)}  ${what}`)
}
const shown = points.filter((_, at) => at % Math.ceil(points.length / 12) === 0)
console.log(
  `soak: heap by minute: ${shown.map(([minute, bytes]) => `${minute.toFixed(1)}: ${formatNumber(bytes / 2 ** 20)} MiB`).join(', ')}`,
)
console.log(
  `soak: heap ${formatNumber(mean / 2 ** 20)} MiB, slope ${formatNumber(slope / 1024)} +- ${formatNumber((2 * error) / 1024)} KiB a minute over ${points.length} samples`,
)
console.log(`soak: open handles ${left.length}`)
for (const problem of findings.problems) console.error(`soak: ${problem}`)
console.log(`soak: ${findings.problems.length} problems, seed ${seed}`)
process.exitCode = findings.problems.length > 0 ? 1 : 0
