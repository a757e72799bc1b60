/**
 * `npm run test:agents [NAMES] [-- --latest] [-- --write]`: real coding agents as subagents, against a scripted model on loopback.
 *
 * Without names, all agents. `--latest` takes the newest versions, and prints what differs from the pinned ones. `--only TEXT` runs the cases whose name
 * has the text. `--write` writes docs/agents.md from the cells of this run and, for other agents and cases, from those of earlier runs with the pinned
 * versions. A program that cannot be installed is a failure.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { AGENTS, type TestedAgent } from './agents.js'
import { CASES, launchAndResult, type AgentCase } from './cases.js'
import { cacheFolder, install, pinned, type InstalledProgram } from './install.js'
import { startScriptedModel } from './model/server.js'
import { agentsPage } from './page.js'
import { differences, keepResults, keptRows, missingCells } from './results.js'
import type { AgentRow } from './rows.js'
import { openStage, RUN_PREFIX } from './stage.js'

/** How many cases run at once. Most of their time they wait. */
const AT_ONCE = 4

/** What hangs is ended, and fails. */
const CASE_MS = 240_000

const args = process.argv.slice(2)
const isLatest = args.includes('--latest')
const only = args.includes('--only') ? (args[args.indexOf('--only') + 1] ?? '') : ''
const names = args.filter((argument, at) => !argument.startsWith('--') && args[at - 1] !== '--only')

const groups = new Set<string>(AGENTS.flatMap(({ group, program }) => [group, program]))
const unknown = names.find((name) => !groups.has(name))
if (unknown !== undefined) {
  console.error(`agents: no agent ${unknown}; there are: ${[...groups].join(', ')}`)
  process.exit(2)
}
const startedAt = Date.now()
const model = await startScriptedModel()
const chosen = AGENTS.filter(
  ({ group, program }) => names.length === 0 || names.includes(group) || names.includes(program),
)
let failed = 0
const rows: (AgentRow & { readonly installed: InstalledProgram; readonly cells: Record<string, string> })[] = []
for (const agent of chosen) {
  const program = pinned[agent.program]
  if (program === undefined) throw new Error(`versions.json has no ${agent.program}`)
  const installed = await install(program, isLatest).catch((error: unknown) => {
    console.log(`${agent.program}: FAILED: not installed: ${String(error)}`)
    failed += 1
  })
  if (installed !== undefined) rows.push({ agent, version: installed.version, installed, cells: {} })
}
const waiting = rows.flatMap((row) => CASES.filter(({ name }) => name.includes(only)).map((one) => ({ row, one })))
const work = async (): Promise<void> => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { row, one } = next
    row.cells[one.name] = await cellOf(one, row.agent, row.installed)
    if (!isLatest) keepResults([row])
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work))
await model.close()
for (const left of readdirSync(cacheFolder).filter((name) => name.startsWith(RUN_PREFIX))) {
  rmSync(join(cacheFolder, left), { recursive: true, force: true })
}
if (isLatest) for (const line of differences(rows)) console.log(`agents: differs: ${line}`)
if (args.includes('--write') && !isLatest) await writePage()
const cells = rows.reduce((sum, row) => sum + Object.keys(row.cells).length, 0)
console.log(`agents: ${cells - failed} passed, ${failed} failed, ${Math.round((Date.now() - startedAt) / 1000)} s`)
process.exitCode = failed === 0 ? 0 : 1

/**
 * Writes the page from the cells of this run, and for other agents and cases from those of earlier runs. It leaves out agents that never had a result, and
 * says of other missing cells that they were not tried.
 */
async function writePage(): Promise<void> {
  const kept = keptRows()
  const seen = kept.filter(({ cells }) => cells[launchAndResult.name] !== undefined)
  const missing = missingCells(kept)
  if (missing.length > 0) console.log(`agents: these cells are missing:\n${missing.join('\n')}`)
  const page = agentsPage(
    seen,
    CASES.map(({ name }) => name),
  )
  const file = fileURLToPath(new URL('../../docs/agents.md', import.meta.url))
  writeFileSync(file, await format(page, { ...(await resolveConfig(file)), parser: 'markdown' }))
  console.log(`agents: wrote docs/agents.md, with ${seen.length} of ${kept.length} agents`)
}

/** A case that fails is tried once more: it has a time limit, and starts a large program on a machine that may be busy. Both tries are printed. */
async function cellOf(
  one: AgentCase,
  agent: TestedAgent,
  installed: InstalledProgram,
  isSecond = false,
): Promise<string> {
  const stage = openStage(agent, installed.command, model, isSecond)
  const title = `${agent.title} ${installed.version} (${agent.way}), ${one.name}`
  const began = Date.now()
  const took = (): string => `${((Date.now() - began) / 1000).toFixed(1)} s`
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${CASE_MS} ms`)), CASE_MS)
  })
  try {
    const cell = await Promise.race([one.run(stage), late])
    console.log(`${title}: ${cell} [${took()}]`)
    return cell
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    console.log(`${title}: ${isSecond ? 'FAILED' : 'failed once'}: ${reason} [${took()}]`)
    if (isSecond) {
      failed += 1
      return `FAILED: ${reason}`
    }
  } finally {
    clearTimeout(timer)
    await stage.close()
  }
  return cellOf(one, agent, installed, true)
}
