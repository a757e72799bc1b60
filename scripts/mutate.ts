/**
 * `npm run mutate -- FOLDER`: runs mutation tests of one folder, with only the unit tests of that folder. It continues from its last result, in
 * `reports/mutation/FOLDER.json`.
 *
 * - With files after the folder, it changes only these files, and keeps the results of the others.
 * - `--tests PATH,PATH` runs only these tests.
 * - `--sample N` changes one of N passages of the sources, because a whole folder takes hours. It changes the same passages in each run, and keeps the
 * results in `FOLDER.sample.json`.
 * - `npm run mutate -- --scores` prints a table with the results of all runs.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

interface Folder {
  readonly sources: string
  /** Files and folders in `sources` that are not changed. */
  readonly except?: readonly string[]
  readonly tests: readonly string[]
  /** Whether each test file loads the modules anew, which takes longer. Without it, tests that need their own modules are left out. */
  readonly isolate?: true
  /** Whether code that runs while a module is loaded is changed, too. The machines are made in such code. */
  readonly hasStatic?: true
}

const folder = (name: string): Folder => ({
  sources: `src/${name}`,
  tests: [`test/unit/${name}/**/*.test.ts`],
})

const folders: Readonly<Record<string, Folder>> = {
  // The excluded test reads the charts as text, and Stryker writes into that text.
  machines: {
    sources: 'machines',
    tests: ['test/unit/machines/**/!(as-text).test.ts'],
    isolate: true,
    hasStatic: true,
  },
  'async-tasks': folder('async-tasks'),
  store: folder('store'),
  'command-tasks': folder('command-tasks'),
  runners: folder('runners'),
  // A mutant of `reap.ts` could send signals to all processes of this user.
  engine: { ...folder('engine'), except: ['src/engine/reap.ts'], isolate: true },
  features: { sources: 'src/features', tests: ['test/unit/async-tasks/**/*.test.ts'] },
  // `isolation` makes the methods of isolated signals while it is loaded, so each test file must load it anew.
  isolation: { ...folder('isolation'), isolate: true },
  // The excluded files are Lua scripts, which only the tests with a Redis run.
  bullmq: { ...folder('bullmq'), except: ['src/bullmq/job-scripts.ts', 'src/bullmq/cluster/cluster-scripts.ts'] },
  mcp: folder('mcp'),
  // The excluded files run in a browser, and only the tests with a browser run them.
  page: { ...folder('page'), except: ['src/page/app'] },
}

const reports = 'reports/mutation'

/** The number of lines of a passage. A mutant that is longer, such as an empty body of a long function, is in no passage. */
const PASSAGE_LINES = 12

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scores: { type: 'boolean', default: false },
    tests: { type: 'string' },
    sample: { type: 'string' },
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
  const { sample } = values
  const incrementalFile = `${reports}/${name}${sample === undefined ? '' : '.sample'}.json`
  const paths = files.length > 0 ? files : filesOf(chosen)
  const sources = sample === undefined ? paths : passagesOf(paths, Number(sample))
  const args = ['--mutate', sources.join(','), '--incremental', '--incrementalFile', incrementalFile]
  if (chosen.hasStatic !== true) args.push('--ignoreStatic')
  const { status } = spawnSync(
    'npx',
    ['stryker', 'run', 'scripts/stryker.config.json', ...args, '--concurrency', values.concurrency],
    {
      stdio: 'inherit',
      env: {
        FC_SEED: '20260101',
        FC_NUM_RUNS: '30',
        ...process.env,
        MUTATE_TESTS: values.tests ?? chosen.tests.join(','),
        MUTATE_ISOLATE: chosen.isolate === true ? '1' : '',
      },
    },
  )
  process.exitCode = status ?? 1
}

function filesOf({ sources, except = [] }: Folder): string[] {
  return readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .map((file) => `${sources}/${file}`)
    .filter((path) => path.endsWith('.ts') && !except.some((left) => path.startsWith(left)))
    .sort()
}

/** Returns one of `every` passages, evenly spread over all files. A passage is a range of lines in the format of Stryker. */
function passagesOf(paths: readonly string[], every: number): string[] {
  if (!Number.isInteger(every) || every < 1) throw new RangeError('--sample: expected an integer >= 1')
  const passages = paths.flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n').length
    return Array.from({ length: Math.ceil(lines / PASSAGE_LINES) }, (_, index) => {
      const start = index * PASSAGE_LINES + 1
      return `${path}:${start}-${start + PASSAGE_LINES - 1}`
    })
  })
  return passages.filter((_, index) => index % every === 0)
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

/** Returns a row of the table. Mutants that are ignored, or that do not compile, do not count. */
function scoreLine([path, statuses]: readonly [string, readonly string[]]): string {
  const count = (...which: string[]): number => statuses.filter((status) => which.includes(status)).length
  const killed = count('Killed', 'Timeout')
  const [survived, uncovered] = [count('Survived'), count('NoCoverage')]
  const all = killed + survived + uncovered
  const score = all === 0 ? '-' : `${((100 * killed) / all).toFixed(1)} %`
  return `| ${path} | ${all} | ${killed} | ${survived} | ${uncovered} | ${score} |`
}
