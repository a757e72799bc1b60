/**
 * `npm run bench`: measures what docs/performance.md claims. Options: `--quick` (to see that it runs), `--only P3` (also a list: P1,P2),
 * `--json` (the rows and nothing else on standard output), `--rounds 9`, `--svg` (measures how cost grows instead, and draws
 * docs/performance.svg; with `--quick` reports/bench/performance.svg).
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { drawChart } from './chart.js'
import { reaches, type Row, type Scale } from './figure.js'
import { figures } from './figures.js'
import { measureGrowth } from './growth.js'
import { describeMachine, formatNumber, formatRow, formatTable } from './report.js'

const USAGE = 'npm run bench -- [--quick] [--only P1,P2] [--json] [--rounds 9] [--svg]'

const { values } = readArguments()
if (values.help) {
  console.log(USAGE)
  process.exit()
}

const rounds = Number(values.rounds ?? (values.quick ? 5 : 15))
if (!Number.isInteger(rounds) || rounds < 5) {
  throw new RangeError(`--rounds: got ${values.rounds ?? ''}, expected at least 5`)
}
const scale: Scale = {
  isQuick: values.quick,
  effort: values.quick ? { rounds, roundMs: 20, warmMs: 150 } : { rounds, roundMs: 150, warmMs: 1500 },
}
const wanted = values.only?.toUpperCase().split(',')
const unknown = wanted?.filter((id) => !figures.some((figure) => figure.id === id)) ?? []
if (unknown.length > 0) {
  throw new RangeError(`--only: got ${unknown.join(', ')}, expected some of ${figures.map(({ id }) => id).join(', ')}`)
}

const say = (text: string): void => {
  if (!values.json) console.log(text)
}

const started = performance.now()
say(`${describeMachine()}${values.quick ? ', quick: only to see that it runs' : ''}`)
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
      },
    })
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
    process.exit(2)
  }
}

/** Every figure, with its goal. */
async function judge(): Promise<void> {
  const rows: Row[] = []
  for (const figure of figures) {
    if (wanted !== undefined && !wanted.includes(figure.id)) continue
    for (const row of await figure.measure(scale)) {
      rows.push(row)
      say(formatRow(row))
    }
  }
  const seconds = (performance.now() - started) / 1000
  const judged = rows.map(reaches).filter((verdict) => verdict !== undefined)
  say(`\n${formatTable(rows)}\n`)
  say(
    `${judged.filter(Boolean).length} of ${judged.length} reach their goal; ${seconds.toFixed(0)} s, ${rounds} rounds each.`,
  )
  if (values.json) {
    console.log(JSON.stringify({ machine: describeMachine(), isQuick: values.quick, rounds, rows }, null, 2))
  }
}

/** The picture of how cost grows. */
async function draw(): Promise<void> {
  const panels = await measureGrowth(scale)
  for (const { title, across, series } of panels) {
    for (const { name, points } of series) {
      say(`${title} by ${across}, ${name}: ${points.map(([at, us]) => `${formatNumber(us)} us at ${at}`).join(', ')}`)
    }
  }
  if (values.json) console.log(JSON.stringify({ machine: describeMachine(), panels }, null, 2))
  const file = values.quick ? 'reports/bench/performance.svg' : 'docs/performance.svg'
  writeFileSync(
    file,
    drawChart(panels, `Processor time of one operation. ${describeMachine()}. npm run bench -- --svg`),
  )
  say(`drawn: ${file}`)
}
