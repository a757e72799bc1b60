/** The summary: a line a figure as it is measured, and all of them again with pass or short. */
import { cpus, totalmem } from 'node:os'
import { reaches, type Goal, type Row } from './figure.js'

/** Where the figures were taken. */
export function describeMachine(): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `Node ${process.version}, ${process.platform} ${process.arch}, ${cpus().length} x ${cpu?.model ?? 'unknown'}, ${memory} GiB`
}

const HEADER = ['', 'figure', 'value', 'unit', 'ratio', 'spread', 'to reach', '', 'reference']

/** All rows as a table. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => {
    const { figure, name, value, unit, ratio, goal, reference } = row
    const verdict = reaches(row)
    return [
      figure,
      name,
      formatNumber(value),
      unit,
      ratio === undefined ? '' : formatNumber(ratio.median),
      ratio === undefined ? '' : `${formatNumber(ratio.low)} to ${formatNumber(ratio.high)}`,
      goal === undefined ? '' : formatGoal(goal),
      verdict === undefined ? '' : verdict ? 'pass' : 'short',
      reference ?? '',
    ]
  })
  const widths = HEADER.map((title, at) => Math.max(title.length, ...cells.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (IS_NUMBER.has(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
  return [HEADER, ...cells].map((row) => line(row).trimEnd()).join('\n')
}

/** One row by itself. */
export function formatRow(row: Row): string {
  const { figure, name, value, unit, ratio, reference, note } = row
  const compared =
    ratio === undefined ? '' : `, ${formatNumber(ratio.median)} x ${reference ?? ''} (${ratio.rounds} rounds)`
  return `${figure} ${name}: ${formatNumber(value)} ${unit}${compared}${note === undefined ? '' : `; ${note}`}`
}

const IS_NUMBER = new Set([2, 4, 5, 6])

const formatGoal = (goal: Goal): string =>
  'atMost' in goal ? `<= ${formatNumber(goal.atMost)}` : `>= ${formatNumber(goal.atLeast)}`

export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString('en-GB')
  if (size >= 100) return value.toFixed(0)
  if (size >= 10) return value.toFixed(1)
  return value.toFixed(size >= 0.1 || size === 0 ? 2 : 3)
}
