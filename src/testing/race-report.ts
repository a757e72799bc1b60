/** How a failed race is reported: a timeline for a person, a regression test for a machine, and the error with both. */
import fc from 'fast-check'
import { RaceError, type RaceFindings } from './race-error.js'
import type { RaceOptions } from './race-options.js'
import type { RaceRun } from './race-run.js'

/** What `raceErrorOf` is made of. */
export interface FailedRace<World, Input, Disk> {
  readonly options: RaceOptions<World, Input, Disk>
  readonly run: RaceRun
  readonly input: Input | undefined
  readonly found: Pick<RaceFindings, 'runs' | 'failed' | 'seed' | 'path'>
  /** The line above the timeline. */
  readonly heading: string
  /** The failures that fast-check met while it shrank. */
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
  const message = [
    `${options.name ?? 'race'}: ${run.failure?.message ?? ''}`,
    heading,
    '',
    timeline,
    '',
    'This test fails in the same way:',
    '',
    regressionTest,
    ...(others === undefined ? [] : ['', others]),
  ]
  return new RaceError(message.join('\n'), { ...found, order, input, timeline, regressionTest, run })
}

/** The actor of each event up to the failure. */
export function orderOf({ events, failure }: RaceRun): string[] {
  return events.slice(0, failure?.after).map(({ actor }) => actor)
}

/** A table with one line for each event up to the failure. */
export function timelineOf({ events, failure }: RaceRun): string {
  const rows = events
    .slice(0, failure?.after)
    .flatMap(({ at, actor, step, notes }) =>
      (notes.length === 0 ? [''] : notes).map((note, line) =>
        line === 0 ? [`${at} ms`, actor, step, note] : ['', '', '', note],
      ),
    )
  const table = [['time', 'actor', 'step', 'what happened'], ...rows]
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const lines = elide(table).map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return lines.map((line) => `  ${line}`.trimEnd()).join('\n')
}

/** Leaves out the middle of a long timeline. */
function elide(table: string[][]): string[][] {
  const hidden = table.length - MAX_LINES
  if (hidden <= 0) return table
  const half = MAX_LINES / 2
  return [...table.slice(0, half), ['', '', `(${hidden} more)`, ''], ...table.slice(-half)]
}

const MAX_LINES = 80

/** The text of a test file that replays the order, and the seed and path if the run was random. */
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
