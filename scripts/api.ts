/**
 * `npm run api`: writes a report of the public names of each entry point, with their signatures, to `docs/reference/api-report/`. With `-- --check` it
 * writes nothing, and fails when a report is out of date. Both fail when there are more names than `MAX_NAMES` and `MAX_MAIN_NAMES` allow.
 *
 * API Extractor reads declarations that `tsc` makes from the sources, so no build is needed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'
import { keptReport, namesOf, problemsOf } from './api-report.js'

/** The maximum number of names that all entry points together may export (docs/adr/0083). Lower it when you remove names. */
const MAX_NAMES = 223
/** The maximum number of names of the entry point `agent-tasks`. */
const MAX_MAIN_NAMES = 62

type Manifest = { name: string; exports: Record<string, { types?: string } | string> }

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = join('docs', 'reference', 'api-report')
// This folder is inside the repository, so that imports in the declarations find `node_modules`.
const declarations = join(root, 'reports', 'declarations')
const { check = false } = parseArgs({ options: { check: { type: 'boolean' } } }).values

emitDeclarations()
const reports = makeReports()
const names = new Set([...reports.values()].flatMap(namesOf))
const mainNames = namesOf(reports.get('agent-tasks.api.md') ?? '')
if (check) checkReports()
else writeReports()
if (names.size > MAX_NAMES) {
  fail(`api: the entry points export ${names.size} names, and at most ${MAX_NAMES} are allowed (docs/adr/0083)`)
}
if (mainNames.length > MAX_MAIN_NAMES) {
  fail(`api: agent-tasks exports ${mainNames.length} names, and at most ${MAX_MAIN_NAMES} are allowed (docs/adr/0083)`)
}

function emitDeclarations(): void {
  rmSync(declarations, { recursive: true, force: true })
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  const options = ['-p', 'src/tsconfig.build.json', '--outDir', declarations]
  const { status } = spawnSync(process.execPath, [compiler, ...options], { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error(`api: tsc ended with ${status ?? 'a signal'}`)
}

/** Makes the reports. Returns their texts by file name. */
function makeReports(): Map<string, string> {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const entryPoints = Object.entries(manifest.exports).flatMap(([subpath, value]) =>
    typeof value === 'string' || value.types === undefined
      ? []
      : [{ name: manifest.name + subpath.slice(1), file: join(declarations, value.types.replace('./dist/', '')) }],
  )
  const made = join(root, 'reports', 'api')
  rmSync(made, { recursive: true, force: true })
  mkdirSync(made, { recursive: true })
  const files = entryPoints.map(({ file }) => file)
  let state: CompilerState | undefined
  const written = new Map<string, string>()
  for (const { name, file } of entryPoints) {
    const reportFileName = `${name.replaceAll('/', '-')}.api.md`
    const config = configOf(file, files, made, reportFileName)
    // All entry points share one program of the compiler, because making it takes most of the time.
    state ??= CompilerState.create(config, { additionalEntryPoints: files })
    const { errorCount } = Extractor.invoke(config, {
      localBuild: true,
      compilerState: state,
      messageCallback: (message) => {
        message.handled = message.logLevel !== ExtractorLogLevel.Error
      },
    })
    if (errorCount > 0) throw new Error(`api: API Extractor cannot read ${file}`)
    written.set(reportFileName, keptReport(readFileSync(join(made, reportFileName), 'utf8'), name))
  }
  return written
}

function configOf(file: string, files: string[], reportFolder: string, reportFileName: string): ExtractorConfig {
  const quiet = { default: { logLevel: ExtractorLogLevel.None } }
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: file,
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: 'ES2023',
            lib: ['ES2023'],
            module: 'NodeNext',
            moduleResolution: 'NodeNext',
            types: ['node'],
            strict: true,
            exactOptionalPropertyTypes: true,
            skipLibCheck: true,
          },
          files,
        },
      },
      apiReport: { enabled: true, reportFileName, reportFolder, reportTempFolder: join(reportFolder, 'temp') },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: quiet,
        // Off, because a public name may mention a type that is not public.
        extractorMessageReporting: quiet,
        // Off, because typedoc checks the comments.
        tsdocMessageReporting: quiet,
      },
    },
  })
}

function presentReports(): string[] {
  return existsSync(join(root, folder))
    ? readdirSync(join(root, folder)).filter((name) => name.endsWith('.api.md'))
    : []
}

function writeReports(): void {
  mkdirSync(join(root, folder), { recursive: true })
  for (const name of presentReports()) if (!reports.has(name)) rmSync(join(root, folder, name))
  for (const [name, text] of reports) writeFileSync(join(root, folder, name), text)
  console.log(
    `api: wrote ${reports.size} reports with ${names.size} names (${mainNames.length} of them of agent-tasks) to ${folder}`,
  )
}

function checkReports(): void {
  const present = new Map(presentReports().map((name) => [name, readFileSync(join(root, folder, name), 'utf8')]))
  for (const problem of problemsOf(present, reports)) fail(`api: ${join(folder, problem)}`)
  if (process.exitCode === undefined) {
    console.log(
      `api: ${reports.size} reports with ${names.size} names (${mainNames.length} of them of agent-tasks) are up to date`,
    )
  } else console.error('api: `npm run api` writes the reports')
}

function fail(message: string): void {
  console.error(message)
  process.exitCode = 1
}
