/**
 * `npm run test:xstate`: runs the tests with the oldest and the newest version of XState that package.json allows, or with
 * those that are named: `npm run test:xstate -- 5.28.0 5.33.3`. Each runs in a copy of the project in a temporary folder,
 * with the dependencies linked; only xstate is installed from the registry.
 *
 * Left out are the tests of the tools in test/support, which are written for the installed version.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const installOptions = [
  '--no-save',
  '--prefer-offline',
  '--no-audit',
  '--no-fund',
  '--ignore-scripts',
  '--loglevel=error',
]

const named = process.argv.slice(2)
const versions = named.length > 0 ? named : oldestAndNewest()
const failed = versions.filter((version) => !passesWith(version))
process.exit(failed.length > 0 ? 1 : 0)

/** The oldest and the newest published version in the range of package.json. */
function oldestAndNewest(): string[] {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: { xstate: string }
  }
  const range = `xstate@${dependencies.xstate}`
  const found = JSON.parse(
    execFileSync('npm', ['view', range, 'version', '--json', '--loglevel=error'], { encoding: 'utf8' }),
  ) as string | string[]
  const sorted = [found].flat().sort((left, right) => left.localeCompare(right, 'en', { numeric: true }))
  const [oldest, newest] = [sorted[0], sorted.at(-1)]
  if (oldest === undefined || newest === undefined) throw new Error(`no version of ${range} is published`)
  return oldest === newest ? [oldest] : [oldest, newest]
}

function passesWith(version: string): boolean {
  const project = mkdtempSync(join(tmpdir(), 'agent-tasks-xstate-'))
  const begun = performance.now()
  try {
    copyProject(project)
    installXState(project, version)
    const exclude = ['--exclude', 'test/unit/support/**']
    const { status, stdout } = spawnSync('npm', ['test', '--silent', '--', ...exclude], {
      cwd: project,
      env: { ...process.env, NO_COLOR: '1' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 64 * 1024 * 1024,
    })
    const passes = status === 0
    if (!passes) console.log(stdout.split('\n').slice(-300).join('\n'))
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    console.log(`xstate ${version}: the tests ${passes ? 'pass' : 'FAIL'} (${seconds} s)`)
    return passes
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Copies the files of the project and links its dependencies, without xstate. */
function copyProject(project: string): void {
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
    if (name !== 'xstate') symlinkSync(join(modules, name), join(project, 'node_modules', name))
  }
}

/** Installs one version of xstate, in a folder of its own: npm would remove the links. */
function installXState(project: string, version: string): void {
  const folder = join(project, '.xstate')
  mkdirSync(folder)
  execFileSync('npm', ['install', ...installOptions, '--prefix', folder, `xstate@${version}`], { stdio: 'inherit' })
  cpSync(join(folder, 'node_modules', 'xstate'), join(project, 'node_modules', 'xstate'), { recursive: true })
  rmSync(folder, { recursive: true })
}
