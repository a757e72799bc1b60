/** The cells of earlier runs with the pinned versions, which the cache keeps, so that a run of some agents can write the page of all. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AGENTS } from './agents.js'
import { CASES } from './cases.js'
import { cacheFolder, pinned } from './install.js'
import type { AgentRow } from './rows.js'

const file = join(cacheFolder, 'results.json')

type Kept = Readonly<Record<string, Readonly<Record<string, string>>>>

const keyOf = ({ program }: AgentRow['agent'], version: string): string => `${program} ${version}`

function read(): Kept {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Kept
  } catch {
    return {}
  }
}

/** Keeps the cells of rows. A case that has failed loses its earlier cell. */
export function keepResults(rows: readonly AgentRow[]): void {
  const kept: Record<string, Readonly<Record<string, string>>> = { ...read() }
  for (const { agent, version, cells } of rows) {
    const all = { ...kept[keyOf(agent, version)], ...cells }
    const passed = Object.entries(all).filter(([, cell]) => !cell.startsWith('FAILED'))
    kept[keyOf(agent, version)] = Object.fromEntries(passed)
  }
  writeFileSync(file, JSON.stringify(kept, undefined, 2))
}

/** The kept rows of all agents in their pinned versions. */
export function keptRows(): readonly AgentRow[] {
  const kept = read()
  return AGENTS.map((agent) => {
    const version = pinned[agent.program]?.version ?? ''
    return { agent, version, cells: kept[keyOf(agent, version)] ?? {} }
  })
}

/** The cells that rows lack. */
export const missingCells = (rows: readonly AgentRow[]): readonly string[] =>
  rows.flatMap(({ agent, cells }) =>
    CASES.filter(({ name }) => cells[name] === undefined).map(({ name }) => `${agent.title} (${agent.way}), ${name}`),
  )

/** What differs between the newest and the pinned version, apart from numbers. */
export function differences(newest: readonly AgentRow[]): readonly string[] {
  const withoutNumbers = (text: string): string => text.replace(/\d[\d.]*/g, '#')
  return newest.flatMap(({ agent, version, cells }) => {
    const before = keptRows().find((row) => row.agent === agent)
    const differing = Object.entries(cells).filter(
      ([name, cell]) => withoutNumbers(cell) !== withoutNumbers(before?.cells[name] ?? ''),
    )
    return differing.map(
      ([name, cell]) =>
        `${agent.title} (${agent.way}), ${name}: ${before?.version ?? 'never'}: ${before?.cells[name] ?? 'not tried'}; ${version}: ${cell}`,
    )
  })
}
