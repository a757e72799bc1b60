/**
 * `npm run coverage:charts`: runs the suites that drive the implementation through its state machines, and prints which states and transitions they
 * reach. The suite `paths` takes every path through a machine with a bounded context. The other suites are `model` and `race`.
 *
 * It fails when a suite fails, or when no suite reaches a state or a transition. The seed is fixed, so that each run prints the same table. FC_SEED and
 * FC_NUM_RUNS change it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findCharts, statesOf, transitionsOf, type Chart } from './charts.js'
import { reachedDirectory, type ReachedFile } from '../test/support/reached-file.js'

const suites = [
  { name: 'paths', files: 'test/model/paths/' },
  { name: 'model', files: 'test/model/' },
  { name: 'race', files: 'test/race/' },
] as const

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
rmSync(reachedDirectory, { recursive: true, force: true })
const { status } = spawnSync(
  'npx',
  ['vitest', 'run', '--config', 'scripts/vitest.charts.config.ts', '--reporter=dot'],
  {
    stdio: 'inherit',
    env: { FC_SEED: '20260101', ...process.env },
  },
)
if (status !== 0) {
  console.error('charts: the suites failed')
  process.exit(1)
}

const reached = existsSync(reachedDirectory)
  ? readdirSync(reachedDirectory).map(
      (name) => JSON.parse(readFileSync(join(reachedDirectory, name), 'utf8')) as ReachedFile,
    )
  : []
const charts = await findCharts()
const problems = charts.flatMap(unreached)
console.log([['chart', 'ways', 'suite', 'states', 'transitions'], ...charts.flatMap(rows)].map(line).join('\n'))
for (const problem of problems) console.error(`charts: ${problem}`)
console.log(`charts: ${charts.length} charts, ${problems.length} states and transitions that no test reaches`)
process.exitCode = problems.length > 0 ? 1 : 0

/** The states and transitions of a machine that a suite reached. Without a suite: those that any suite reached. */
function reachedOf({ machine }: Chart, suite?: string) {
  const files = reached.filter(({ file }) => suite === undefined || suiteOf(file) === suite)
  const charts = files.flatMap(({ charts }) => charts[machine.id] ?? [])
  return {
    ways: charts.reduce((sum, { ways }) => sum + ways, 0),
    states: new Set(charts.flatMap(({ states }) => states)),
    transitions: new Set(charts.flatMap(({ transitions }) => transitions)),
  }
}

function suiteOf(file: string): string | undefined {
  return suites.find(({ files }) => file.startsWith(files))?.name
}

function unreached(chart: Chart): string[] {
  const { states, transitions } = reachedOf(chart)
  return [
    ...statesOf(chart.machine)
      .filter(({ id }) => !states.has(id))
      .map(({ id }) => `${chart.file}: no test reaches the state ${id}`),
    ...transitionsOf(chart.machine)
      .filter(({ key }) => !transitions.has(key))
      .map(
        ({ from, event, guard }) => `${chart.file}: no test takes ${event}${guard ? ` [${guard}]` : ''} of ${from.id}`,
      ),
  ]
}

/** One line of the table for each suite that reaches the machine. */
function rows(chart: Chart): string[][] {
  const all = { states: statesOf(chart.machine).length, transitions: transitionsOf(chart.machine).length }
  return suites.flatMap(({ name }) => {
    const { ways, states, transitions } = reachedOf(chart, name)
    if (states.size === 0) return []
    const share = `${transitions.size}/${all.transitions}`
    return [[chart.machine.id, ways === 0 ? '' : String(ways), name, `${states.size}/${all.states}`, share]]
  })
}

function line([chart = '', ways = '', suite = '', states = '', transitions = '']: readonly string[]): string {
  return [chart.padEnd(14), ways.padStart(5), suite.padEnd(6), states.padStart(7), transitions.padStart(12)].join('  ')
}
