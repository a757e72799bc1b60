/**
 * `npm run verify [-- --skip STEP]`: runs all checks before a commit. Runs them in order, prints how long each one took, and goes on when one fails:
 * the last line names all that failed. `--skip` leaves out a step that has already run. You can give it several times.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const all = [
  'format:check',
  'words',
  'lint',
  'boundaries',
  'types',
  'unused',
  'guarantees',
  'docs:check',
  'docs:site',
  'api:check',
  'test:coverage',
  'test:scripts',
  'faults',
  'coverage:charts',
  'build',
  'page-size',
  'docs:run',
  'package',
]
const { skip = [] } = parseArgs({ options: { skip: { type: 'string', multiple: true } } }).values
const unknown = skip.filter((step) => !all.includes(step))
if (unknown.length > 0) throw new RangeError(`--skip: expected one of ${all.join(', ')}, got ${unknown.join(', ')}`)
const steps = all.filter((step) => !skip.includes(step))

const started = performance.now()
const failed: string[] = []
for (const step of steps) {
  console.log(`verify: ${step}`)
  const begun = performance.now()
  const { status, signal } = spawnSync('npm', ['run', '--silent', step], { stdio: 'inherit' })
  if (status !== 0) {
    failed.push(step)
    console.error(`verify: ${step} FAILED after ${since(begun)} (${signal ?? `exit ${status ?? 'unknown'}`})`)
  } else {
    console.log(`verify: ${step} ok in ${since(begun)}`)
  }
}
if (failed.length > 0) {
  console.error(`verify: FAILED after ${since(started)}: ${failed.join(', ')}`)
  process.exit(1)
}
console.log(`verify: all ${steps.length} steps ok in ${since(started)}`)

function since(begun: number): string {
  return `${((performance.now() - begun) / 1000).toFixed(1)} s`
}
