/** Prints rows: each as a line when it is measured, and all of them as a Markdown table. */
import { cpus, totalmem } from 'node:os'
import { isReferenceBetter, reaches, type Goal, type Row } from './figure.js'
import type { Sample } from './statistics.js'

/** The machine on which the figures were taken. */
export function describeMachine(): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `Node ${process.version}, ${process.platform} ${process.arch}, ${cpus().length} x ${cpu?.model ?? 'unknown'}, ${memory} GiB`
}

/** The cells of a row, by their titles. */
function cellsOf(row: Row): Readonly<Record<string, string>> {
  const { figure, line, value, ratio, reference, older } = row
  const { unit } = line.quantity
  const verdict = reaches(row)
  return {
    Figure: figure,
    What: line.name,
    Value: ratio === undefined ? `${formatSample(value)} ${unit}` : `${formatNumber(value.median)} ${unit}`,
    'Ratio (spread)': ratio === undefined ? '' : formatSample(ratio),
    Reference:
      line.reference === undefined || reference === undefined
        ? ''
        : `${line.reference.name}: ${formatNumber(reference.median)} ${unit}`,
    'To reach': line.goal === undefined ? '' : formatGoal(line.goal),
    Verdict:
      verdict === undefined
        ? isReferenceBetter(row)
          ? 'the reference is better'
          : ''
        : verdict
          ? 'reached'
          : '**short**',
    ...(older && {
      Before: `${formatNumber(older.value.median)} ${unit}`,
      'Its ratio': older.ratio === undefined ? '' : formatNumber(older.ratio.median),
      'Value / before (spread)': formatSample(older.change),
    }),
  }
}

/** All rows, as the table in docs/performance.md. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map(cellsOf)
  const titles = Object.keys(cells[0] ?? {})
  const widths = titles.map((title) => Math.max(title.length, ...cells.map((row) => row[title]?.length ?? 0)))
  const format = (texts: readonly string[]): string =>
    `| ${texts.map((text, at) => text.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [
    format(titles),
    format(widths.map((width) => '-'.repeat(width))),
    ...cells.map((row) => format(titles.map((title) => row[title] ?? ''))),
  ].join('\n')
}

/** One row on one line. */
export function formatRow(row: Row): string {
  const { Figure = '', What = '', Value = '', ...rest } = cellsOf(row)
  const more = Object.entries(rest).filter(([, text]) => text !== '')
  return [`${Figure} ${What}: ${Value}`, ...more.map(([title, text]) => `${title.toLowerCase()}: ${text}`)].join('; ')
}

const formatSample = ({ median, low, high }: Sample): string =>
  `${formatNumber(median)} (${formatNumber(low)} to ${formatNumber(high)})`

const formatGoal = (goal: Goal): string =>
  'atMost' in goal ? `at most ${goal.atMost}` : `at least ${goal.atLeast.toLocaleString('en-GB')}`

export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString('en-GB')
  if (size >= 100) return value.toFixed(0)
  if (size >= 10) return value.toFixed(1)
  return value.toFixed(size >= 0.1 || size === 0 ? 2 : 3)
}
