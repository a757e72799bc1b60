/** Reports a failed race with a regression test, a timeline, and an error that contains both. */
import fc from 'fast-check'
import { RaceError, type RaceFindings } from './race-error.js'
import type { RaceOptions } from './race-options.js'
import type { RaceRun } from './race-run.js'
import { userOf } from './timer-origin.js'

export interface FailedRace<World, Input, Disk> {
  readonly options: RaceOptions<World, Input, Disk>
  readonly run: RaceRun
  readonly input: Input | undefined
  readonly found: Pick<RaceFindings, 'runs' | 'failed' | 'seed' | 'path'>
  readonly heading: string
  /** The failures that fast-check found while it shrank, as text. */
  readonly others?: string | undefined
}

export function raceErrorOf<World, Input, Disk>({
  options,
  run,
  input,
  found,
  heading,
  others,
}: FailedRace<World, Input, Disk>): RaceError {
  const order = orderOf(run)
  const timeline = timelineOf(run)
  const regressionTest = regressionTestOf(options, order, input, found)
  const failure = run.failure?.message ?? ''
  // The timeline comes last, because a terminal shows the end of a message.
  const message = [
    `${options.name ?? 'race'}: ${failure}`,
    ...throwerOf(run),
    '',
    'This test fails in the same way:',
    '',
    regressionTest,
    '',
    ...(others === undefined ? [] : [others, '']),
    heading,
    '',
    timeline,
    `  => ${cut(oneLine(failure), WIDTH - 5)}`,
  ]
  return new RaceError(message.join('\n'), { ...found, order, input, timeline, regressionTest, run })
}

export function orderOf({ events, failure }: RaceRun): string[] {
  return events.slice(0, failure?.after).map(({ actor }) => actor)
}

/** Says where the cause of a failure was thrown. Empty if that is unknown. */
function throwerOf({ failure }: RaceRun): string[] {
  const thrower = failure?.cause instanceof Error ? userOf(failure.cause.stack) : undefined
  return thrower === undefined ? [] : [`thrown in ${thrower}`]
}

/** A table with one line for each event up to the failure, limited to one screen. */
export function timelineOf({ setup, events, failure }: RaceRun): string {
  const rows = [
    ...(setup.length === 0 ? [] : rowsOf(['', 'setup', ''], setup)),
    ...events
      .slice(0, failure?.after)
      .flatMap(({ at, actor, step, notes }) => rowsOf([`${at} ms`, actor, step], notes)),
  ]
  const table = [['time', 'actor', 'step', 'what happened'], ...rows].map((row) => row.map(oneLine))
  const widths = widthsOf(table)
  const room = WIDTH - 2 - widths.reduce((sum, width) => sum + width + 2, 0)
  return elide(table.flatMap((row) => wrapped(row, room)))
    .map((row) => row.map((cell, column) => fit(cell, widths[column] ?? room)).join('  '))
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
}

function rowsOf(first: readonly string[], notes: readonly string[]): string[][] {
  return (notes.length === 0 ? [''] : notes).map((note, line) => [...(line === 0 ? first : ['', '', '']), note])
}

/** The widths of all columns but the last one. The last column gets at least a quarter of the screen. */
function widthsOf(table: readonly string[][]): number[] {
  const [time = 0, actor = 0, step = 0] = [0, 1, 2].map((column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  )
  const room = (WIDTH * 3) / 4 - time - 8
  const narrower = Math.min(actor, step, Math.floor(room / 2))
  const wider = Math.min(Math.max(actor, step), room - narrower)
  return actor <= step ? [time, narrower, wider] : [time, wider, narrower]
}

/** Splits a row whose last cell is too wide into several rows. */
function wrapped([time = '', actor = '', step = '', note = '']: string[], room: number): string[][] {
  const lines = note.match(new RegExp(`.{1,${room}}(?=\\s|$)|.{${room}}`, 'gu')) ?? ['']
  return lines.map((line, at) => (at === 0 ? [time, actor, step, line.trim()] : ['', '', '', line.trim()]))
}

const oneLine = (text: string): string => text.replaceAll(/\s+/gu, ' ')

const cut = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length - 1)}…`)

const fit = (text: string, width: number): string => cut(text, width).padEnd(width)

/** The width of a screen, in characters. */
const WIDTH = 100

/** Leaves out the middle of a long timeline. */
function elide(table: string[][]): string[][] {
  const hidden = table.length - MAX_LINES
  if (hidden <= 0) return table
  const half = MAX_LINES / 2
  return [...table.slice(0, half), ['', '', `(${hidden + 1} more)`, ''], ...table.slice(1 - half)]
}

/** The maximum number of lines of a timeline, so that it fits on a screen. */
const MAX_LINES = 22

/** The text of a test file that replays the order, with the seed and path of a random run. */
function regressionTestOf<World, Input, Disk>(
  options: RaceOptions<World, Input, Disk>,
  order: readonly string[],
  input: Input | undefined,
  { seed, path }: Pick<RaceFindings, 'seed' | 'path'>,
): string {
  const isRandom = seed !== undefined && path !== undefined
  const { module, name } = options.source ?? { module: './race.js', name: 'race' }
  const given = input === undefined ? '' : `, input: ${fc.stringify(input)}`
  const title = (what: string): string => quote(`${options.name ?? 'race'}: ${what}`)
  const comment = options.source === undefined ? ' // the options that exploreRaces was given' : ''
  const lines = [
    `import { test } from 'node:test' // or from 'vitest'`,
    `import { ${isRandom ? 'exploreRaces, ' : ''}replayRace } from 'agent-tasks/testing'`,
    `import { ${name} } from ${quote(module)}${comment}`,
    '',
    `test(${title('holds in the order in which it once failed')}, async () => {`,
    `  await replayRace({ ...${name}, order: [${order.map(quote).join(', ')}]${given} })`,
    '})',
  ]
  if (isRandom) {
    lines.push(
      '',
      `test(${title('holds at the seed and path where it once failed')}, async () => {`,
      `  await exploreRaces({ ...${name}, mode: 'random', seed: ${seed}, path: ${quote(path)}, endOnFailure: true })`,
      '})',
    )
  }
  return lines.join('\n')
}

const quote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
