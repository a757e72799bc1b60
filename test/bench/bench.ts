/**
 * `npm run bench`: measures what docs/performance.md claims. Options: `--only P1,P2`, `--quick` (only to see that it runs), `--json` (the
 * rows and nothing else on standard output), `--rounds 9`, `--against DIR` (measures the build of another checkout in the same run),
 * `--svg` (measures how cost grows instead and draws docs/performance.svg; with `--quick` reports/bench/performance.svg).
 */
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { drawChart } from './chart.js'
import { measure, reaches, type Row, type Scale } from './figure.js'
import { figures } from './figures.js'
import { measureGrowth } from './growth.js'
import { entryUrl } from './package.js'
import { describeMachine, formatNumber, formatRow, formatTable } from './report.js'

const USAGE = 'npm run bench -- [--only P1,P2] [--quick] [--json] [--rounds 9] [--against DIR] [--svg]'

const { values } = readArguments()
if (values.help) {
  console.log(USAGE)
  process.exit()
}

const fewest = values.quick ? 1 : 5
const rounds = Number(values.rounds ?? (values.quick ? fewest : 15))
if (!Number.isInteger(rounds) || rounds < fewest) {
  exitWith(`--rounds: got ${values.rounds ?? ''}, expected at least ${fewest}`)
}
const wanted = values.only?.toUpperCase().split(',')
const unknown = wanted?.filter((id) => !figures.some((figure) => figure.id === id)) ?? []
if (unknown.length > 0) {
  exitWith(`--only: got ${unknown.join(', ')}, expected some of ${figures.map(({ id }) => id).join(', ')}`)
}
const scale: Scale = {
  isQuick: values.quick,
  effort: values.quick
    ? { rounds, starts: 1, roundMs: 20, warmMs: 150 }
    : { rounds, starts: 5, roundMs: 150, warmMs: 1500 },
  checkout: process.cwd(),
  ...(values.against !== undefined && { against: builtCheckout(values.against) }),
}

const print = (text: string): void => {
  if (!values.json) console.log(text)
}

const started = performance.now()
print(`${describeMachine()}${values.quick ? ', quick: only to see that it runs' : ''}`)
if (scale.against !== undefined) print(`before: ${scale.against}`)
if (values.svg) await draw()
else await judge()

function readArguments() {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        svg: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        only: { type: 'string' },
        rounds: { type: 'string' },
        against: { type: 'string' },
      },
    })
  } catch (error) {
    return exitWith(error instanceof Error ? error.message : String(error))
  }
}

function exitWith(problem: string): never {
  console.error(`${problem}\n${USAGE}`)
  process.exit(2)
}

function builtCheckout(directory: string): string {
  const checkout = resolve(directory)
  const isBuilt = existsSync(join(checkout, 'package.json')) && existsSync(fileURLToPath(entryUrl(checkout, '.')))
  return isBuilt ? checkout : exitWith(`--against: ${checkout} has no build; run npm ci && npm run build there`)
}

/** Measures the figures and compares them with their goals. */
async function judge(): Promise<void> {
  const rows: Row[] = []
  for (const figure of figures) {
    if (wanted !== undefined && !wanted.includes(figure.id)) continue
    try {
      for (const row of await measure(figure, scale)) {
        rows.push(row)
        print(formatRow(row))
      }
    } catch (error) {
      // What one figure lacks, such as a browser, is nothing to the others.
      console.error(`${figure.id} FAILED: ${error instanceof Error ? error.message : String(error)}`)
      process.exitCode = 1
    }
  }
  const seconds = (performance.now() - started) / 1000
  const verdicts = rows.map(reaches).filter((verdict) => verdict !== undefined)
  print(`\n${formatTable(rows)}\n`)
  print(
    `${verdicts.filter(Boolean).length} of ${verdicts.length} goals are reached. ${seconds.toFixed(0)} s, ${rounds} rounds.`,
  )
  if (values.json) {
    console.log(JSON.stringify({ machine: describeMachine(), isQuick: values.quick, rounds, rows }, null, 2))
  }
}

/** Measures how cost grows and draws it. */
async function draw(): Promise<void> {
  const panels = await measureGrowth(scale)
  for (const { title, across, series } of panels) {
    for (const { name, points } of series) {
      print(`${title} by ${across}, ${name}: ${points.map(([at, us]) => `${formatNumber(us)} us at ${at}`).join(', ')}`)
    }
  }
  if (values.json) console.log(JSON.stringify({ machine: describeMachine(), panels }, null, 2))
  const file = values.quick ? 'reports/bench/performance.svg' : 'docs/performance.svg'
  writeFileSync(
    file,
    drawChart(panels, `Processor time of one operation. ${describeMachine()}. npm run bench -- --svg`),
  )
  print(`drawn: ${file}`)
}
