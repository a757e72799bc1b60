/**
 * Runs tests with other versions of one package than the installed one. Each version gets a copy of the project in a temporary folder. There the
 * dependencies are links, and only the package is installed from the registry.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const installOptions = [
  '--no-save',
  '--prefer-offline',
  '--no-audit',
  '--no-fund',
  '--ignore-scripts',
  '--legacy-peer-deps',
  '--loglevel=error',
]

export interface PackageTests {
  readonly name: string
  /** The range of versions that package.json allows. */
  readonly range: string
  /** The arguments with which `npm` is run in the copy. */
  readonly command: readonly string[]
  /** What to print if the tests fail with a version. */
  readonly advice?: string
}

/** Returns the range of versions that package.json allows for a package. */
export function allowedRange(kind: 'dependencies' | 'peerDependencies', name: string): string {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
    typeof kind,
    Readonly<Record<string, string>>
  >
  const range = manifest[kind][name]
  if (range === undefined) throw new Error(`package.json has no ${name} in ${kind}`)
  return range
}

/**
 * Runs the tests with the versions in the arguments. Without arguments: with the oldest and the newest version that package.json allows. Then ends the
 * process.
 */
export function testVersions(tests: PackageTests): never {
  const named = process.argv.slice(2)
  const versions = named.length > 0 ? named : oldestAndNewest(tests)
  const failed = versions.filter((version) => !passesWith(tests, version))
  process.exit(failed.length > 0 ? 1 : 0)
}

/** The oldest and the newest published version in the range. */
function oldestAndNewest({ name, range }: PackageTests): string[] {
  const found = JSON.parse(
    execFileSync('npm', ['view', `${name}@${range}`, 'version', '--json', '--loglevel=error'], { encoding: 'utf8' }),
  ) as string | string[]
  const sorted = [found].flat().sort((left, right) => left.localeCompare(right, 'en', { numeric: true }))
  const [oldest, newest] = [sorted[0], sorted.at(-1)]
  if (oldest === undefined || newest === undefined) throw new Error(`no version of ${name}@${range} is published`)
  return oldest === newest ? [oldest] : [oldest, newest]
}

function passesWith(tests: PackageTests, version: string): boolean {
  const { name, command, advice } = tests
  const project = mkdtempSync(join(tmpdir(), `agent-tasks-${name}-`))
  const begun = performance.now()
  try {
    copyProject(project, name)
    install(project, name, version)
    const { status, stdout } = spawnSync('npm', command, {
      cwd: project,
      env: { ...process.env, NO_COLOR: '1' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 64 * 1024 * 1024,
    })
    const passes = status === 0
    if (!passes) console.log(stdout.split('\n').slice(-300).join('\n'))
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    console.log(`${name} ${version}: the tests ${passes ? 'pass' : 'FAIL'} (${seconds} s)`)
    if (!passes && advice !== undefined) console.log(advice)
    return passes
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Copies the files of the project. Links its dependencies, except the package that is tested. */
function copyProject(project: string, without: string): void {
  const options = { cwd: root, encoding: 'utf8' } as const
  const files = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'],
    options,
  )
  for (const file of files.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(project, file)), { recursive: true })
    cpSync(join(root, file), join(project, file), { force: true })
  }
  const modules = join(root, 'node_modules')
  mkdirSync(join(project, 'node_modules'))
  for (const name of readdirSync(modules)) {
    if (name !== without) symlinkSync(join(modules, name), join(project, 'node_modules', name))
  }
}

/** Installs one version of the package with its dependencies. Does that in a separate folder, because npm would remove the links. */
function install(project: string, name: string, version: string): void {
  const folder = join(project, '.installed')
  mkdirSync(folder)
  execFileSync('npm', ['install', ...installOptions, '--prefix', folder, `${name}@${version}`], { stdio: 'inherit' })
  const modules = join(folder, 'node_modules')
  const target = join(project, 'node_modules', name)
  cpSync(join(modules, name), target, { recursive: true })
  for (const dependency of readdirSync(modules).filter((each) => each !== name && !each.startsWith('.'))) {
    const nested = join(target, 'node_modules', dependency)
    if (!existsSync(nested)) cpSync(join(modules, dependency), nested, { recursive: true })
  }
  rmSync(folder, { recursive: true })
}
