/**
 * `npm run mutate -- FOLDER`: mutation tests of one folder, with the unit tests of that folder only. It goes on from its last result, in
 * `reports/mutation/FOLDER.json`. With files after the folder, it changes these alone, and keeps the results of the others; `--tests PATH,PATH`
 * takes some of the tests only. `npm run mutate -- --scores` prints a table of what all runs have found.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

interface Folder {
  readonly sources: readonly string[]
  readonly tests: readonly string[]
  /** Whether each run loads its modules anew, which takes longer. Without it, tests that need modules of their own are left out. */
  readonly isolate?: true
  /** Whether what runs when a module is loaded is changed, too. Machines are made then. */
  readonly hasStatic?: true
}

const folder = (name: string): Folder => ({
  sources: [`src/${name}/**/*.ts`],
  tests: [`test/unit/${name}/**/*.test.ts`],
})

const folders: Readonly<Record<string, Folder>> = {
  // It reads the charts as text, and Stryker has written into that.
  machines: {
    sources: ['machines/**/*.ts'],
    tests: ['test/unit/machines/**/!(as-text).test.ts'],
    isolate: true,
    hasStatic: true,
  },
  'async-tasks': folder('async-tasks'),
  store: folder('store'),
  'command-tasks': folder('command-tasks'),
  runners: folder('runners'),
  // A mutant of `reap.ts` might signal every process of this user.
  engine: { ...folder('engine'), sources: ['src/engine/**/*.ts', '!src/engine/reap.ts'], isolate: true },
  // The methods of isolated signals are made once for each load.
  callbacks: { ...folder('callbacks'), isolate: true },
  // The scripts are Lua, and are tested on a Redis.
  bullmq: { ...folder('bullmq'), sources: ['src/bullmq/**/*.ts', '!src/bullmq/**/lua/**'] },
  mcp: folder('mcp'),
  // What runs in a browser is tested in one.
  page: { ...folder('page'), sources: ['src/page/**/*.ts', '!src/page/app/**'] },
}

const reports = 'reports/mutation'

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scores: { type: 'boolean', default: false },
    tests: { type: 'string' },
    concurrency: { type: 'string', default: '2' },
  },
})
if (values.scores) console.log(scoreTable().join('\n'))
else mutate(positionals)

function mutate([name = '', ...files]: readonly string[]): void {
  const chosen = Object.hasOwn(folders, name) ? folders[name] : undefined
  if (chosen === undefined) {
    throw new RangeError(`mutate: expected one of ${Object.keys(folders).join(', ')}, got ${name || 'nothing'}`)
  }
  mkdirSync(reports, { recursive: true })
  const incrementalFile = `${reports}/${name}.json`
  const sources = files.length > 0 ? files : chosen.sources
  const args = ['--mutate', sources.join(','), '--incremental', '--incrementalFile', incrementalFile]
  if (chosen.hasStatic !== true) args.push('--ignoreStatic')
  const { status } = spawnSync('npx', ['stryker', 'run', ...args, '--concurrency', values.concurrency], {
    stdio: 'inherit',
    env: {
      FC_SEED: '20260101',
      FC_NUM_RUNS: '30',
      ...process.env,
      MUTATE_TESTS: values.tests ?? chosen.tests.join(','),
      MUTATE_ISOLATE: chosen.isolate === true ? '1' : '',
    },
  })
  process.exitCode = status ?? 1
}

interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: readonly { readonly status: string }[] }>>
}

/** One line for each file, and one for each folder. */
function scoreTable(): string[] {
  const names = existsSync(reports) ? readdirSync(reports).filter((file) => file.endsWith('.json')) : []
  const lines = names.sort().flatMap((file) => {
    const { files } = JSON.parse(readFileSync(join(reports, file), 'utf8')) as Report
    const statuses = Object.entries(files).map(
      ([path, { mutants }]) => [path, mutants.map(({ status }) => status)] as const,
    )
    return [...statuses, [`**${file.slice(0, -'.json'.length)}**`, statuses.flatMap(([, all]) => all)] as const].map(
      scoreLine,
    )
  })
  return ['| file | mutants | killed | survived | no coverage | score |', '|---|---|---|---|---|---|', ...lines]
}

/** Mutants that are ignored, or that do not compile, do not count. */
function scoreLine([path, statuses]: readonly [string, readonly string[]]): string {
  const count = (...which: string[]): number => statuses.filter((status) => which.includes(status)).length
  const killed = count('Killed', 'Timeout')
  const [survived, uncovered] = [count('Survived'), count('NoCoverage')]
  const all = killed + survived + uncovered
  const score = all === 0 ? '-' : `${((100 * killed) / all).toFixed(1)} %`
  return `| ${path} | ${all} | ${killed} | ${survived} | ${uncovered} | ${score} |`
}
