/** How a lost race is told: as a timeline that a person can follow, and as a test that a machine can run. */
import fc from 'fast-check'
import type { RaceOptions } from './race-options.js'
import type { RaceRun } from './race-run.js'

/** Who went next, event by event, up to the failure. */
export function orderOf({ events, failure }: RaceRun): string[] {
  return events.slice(0, failure?.after).map(({ actor }) => actor)
}

/** One line for each event up to the failure: time, actor, step, what happened. */
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

/** A run without an end is told by its beginning and its end. */
function elide(table: string[][]): string[][] {
  const hidden = table.length - MAX_LINES
  if (hidden <= 0) return table
  const half = MAX_LINES / 2
  return [...table.slice(0, half), ['', '', `(${hidden} more)`, ''], ...table.slice(-half)]
}

const MAX_LINES = 80

/** A test file that replays the order, and the seed and path if the runs were random. */
export function regressionTestOf<World, Input>(
  options: RaceOptions<World, Input>,
  order: readonly string[],
  input: Input | undefined,
  replay: { readonly seed: number; readonly path: string } | undefined,
): string {
  const { module, name } = options.source ?? { module: './race.js', name: 'race' }
  const given = input === undefined ? '' : `, input: ${fc.stringify(input)}`
  const title = (what: string): string => quote(`${options.name ?? 'race'}: ${what}`)
  const comment = options.source === undefined ? ' // the options that exploreRaces was given' : ''
  const lines = [
    `import { test } from 'node:test' // or from 'vitest'`,
    `import { ${replay === undefined ? '' : 'exploreRaces, '}replayRace } from 'agent-tasks/testing'`,
    `import { ${name} } from ${quote(module)}${comment}`,
    '',
    `test(${title('holds in the order in which it once failed')}, async () => {`,
    `  await replayRace({ ...${name}, order: [${order.map(quote).join(', ')}]${given} })`,
    '})',
  ]
  if (replay !== undefined) {
    lines.push(
      '',
      `test(${title('holds at the seed and path where it once failed')}, async () => {`,
      `  await exploreRaces({ ...${name}, mode: 'random', seed: ${replay.seed}, path: ${quote(replay.path)}, endOnFailure: true })`,
      '})',
    )
  }
  return lines.join('\n')
}

const quote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
