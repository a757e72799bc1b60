/**
 * `npm run test:waking [NAMES] [-- --only TEXT] [-- --kills 2] [-- --write]`: results wake real clients through their hooks, against a scripted model on loopback.
 *
 * Without names, all clients. `--kills` is how often each client is killed (10). `--write` writes the table of docs/waking.md, with the last result of each case. A client that cannot be installed is a failure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { HOOK_CLIENTS } from '../../../src/features/hooks/clients.js'
import { CLIENT_NAMES, type ClientName } from '../../../src/features/hooks/hook-client.js'
import { cacheFolder, install, pinned } from '../install.js'
import { startScriptedModel } from '../model/server.js'
import { CASE_NAMES, casesOf, MOMENTS, type WakingCase } from './cases.js'
import { WOKEN } from './clients.js'
import { openWakingStage, removeStages, type WakingStage } from './stage.js'

/** What hangs is ended, and fails. */
const CASE_MS = 900_000

/** How many cases run at once. Most of their time they wait. */
const AT_ONCE = 3

const PREFIX = `waking-${process.pid}-`

const args = process.argv.slice(2)
const only = args.includes('--only') ? (args[args.indexOf('--only') + 1] ?? '') : ''
const kills = Number(args.includes('--kills') ? args[args.indexOf('--kills') + 1] : MOMENTS.length)
const names = args.filter(
  (argument, at) => !argument.startsWith('--') && !['--only', '--kills'].includes(args[at - 1] ?? ''),
)
const unknown = names.find((name) => !CLIENT_NAMES.some((client) => client === name))
if (unknown !== undefined) {
  console.error(`waking: no client ${unknown}; there are: ${CLIENT_NAMES.join(', ')}`)
  process.exit(2)
}
const startedAt = Date.now()
const chosen = CLIENT_NAMES.filter((name) => names.length === 0 || names.includes(name))
/** The cells of this run and of earlier ones. */
const CELLS = join(cacheFolder, 'waking.json')
const cells: Record<string, string> = existsSync(CELLS)
  ? (JSON.parse(readFileSync(CELLS, 'utf8')) as Record<string, string>)
  : {}
let [passed, failed] = [0, 0]

const model = await startScriptedModel()
const commands = new Map<ClientName, string>()
for (const client of chosen) {
  const program = pinned[WOKEN[client].program]
  try {
    if (program === undefined) throw new Error('versions.json does not have it')
    commands.set(client, (await install(program, false)).command)
  } catch (error) {
    failed += 1
    console.log(`${client}: FAILED: not installed: ${String(error)}`)
  }
}
const waiting = [...commands].flatMap(([client, command]) =>
  casesOf(client)
    .filter(({ name, inner }) => name.includes(only) && (inner === undefined || commands.has(inner)))
    .map((one) => ({ client, command, one })),
)
const work = async (): Promise<void> => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { client, command, one } = next
    const cell = (await tried(client, command, one, 'failed once')) ?? (await tried(client, command, one, 'FAILED'))
    if (cell === undefined) failed += 1
    else passed += 1
    cells[cellKey(client, one.name)] = cell ?? 'failed'
    writeFileSync(CELLS, JSON.stringify(cells, undefined, 2))
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work))
await model.close()
removeStages(PREFIX)
if (args.includes('--write')) await writeTable()
console.log(`waking: ${passed} passed, ${failed} failed, ${Math.round((Date.now() - startedAt) / 1000)} s`)
process.exitCode = failed === 0 ? 0 : 1

async function tried(
  client: ClientName,
  command: string,
  one: WakingCase,
  failure: string,
): Promise<string | undefined> {
  const title = `${HOOK_CLIENTS[client].title}, ${one.name}`
  const began = Date.now()
  const took = (): string => `[${((Date.now() - began) / 1000).toFixed(1)} s]`
  const stages: WakingStage[] = []
  const open = (inner?: ClientName): WakingStage => {
    const innerCommand = inner === undefined ? undefined : commands.get(inner)
    const other = inner === undefined || innerCommand === undefined ? undefined : { name: inner, command: innerCommand }
    const stage = openWakingStage(client, command, model, PREFIX, other)
    stages.push(stage)
    return stage
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${CASE_MS} ms`)), CASE_MS)
  })
  try {
    const cell = await Promise.race([one.run(client, open, kills), late])
    console.log(`${title}: ${cell} ${took()}`)
    return cell
  } catch (error) {
    console.log(`${title}: ${failure}: ${error instanceof Error ? error.message : String(error)} ${took()}`)
    return undefined
  } finally {
    clearTimeout(timer)
    for (const stage of stages) await stage.close()
  }
}

function cellKey(client: ClientName, name: string): string {
  return `${client} ${HOOK_CLIENTS[client].seen}, ${name}`
}

/** Writes the table between its two marks, from the last result of each case with these versions. */
async function writeTable(): Promise<void> {
  const file = fileURLToPath(new URL('../../../docs/waking.md', import.meta.url))
  const text = readFileSync(file, 'utf8')
  const head = ['', ...CLIENT_NAMES.map((client) => `${HOOK_CLIENTS[client].title} ${HOOK_CLIENTS[client].seen}`)]
  const rows = CASE_NAMES.map((name) => [
    name,
    ...CLIENT_NAMES.map((client) => cells[cellKey(client, name)] ?? 'not tried'),
  ])
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
  const [begin, end] = ['<!-- waking: begin -->', '<!-- waking: end -->']
  const written = `${text.slice(0, text.indexOf(begin))}${begin}\n\n${table}\n\n${text.slice(text.indexOf(end))}`
  writeFileSync(file, await format(written, { ...(await resolveConfig(file)), filepath: file }))
  console.log(`waking: wrote ${file}`)
}
