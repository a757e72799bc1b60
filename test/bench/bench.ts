/**
 * `npm run bench`: measures what docs/performance.md claims. Options: `--quick` (to see that it runs), `--only P3` (also a list: P1,P2),
 * `--json` (the rows and nothing else on standard output), `--svg` (also measures how cost grows, and draws docs/performance.svg).
 */
import { parseArgs } from 'node:util'
import { reaches, type Row, type Scale } from './figure.js'
import { figures } from './figures.js'
import { describeMachine, formatRow, formatTable } from './report.js'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
  },
})

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
