/**
 * Installs agents by version into a folder of the user's cache, each version once. The project itself does not get them: together they have more than a
 * gigabyte.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** One program of `versions.json`. */
export interface PinnedProgram {
  readonly package: string
  readonly version: string
  readonly program: string
}

export interface InstalledProgram {
  readonly command: string
  readonly version: string
}

/** All programs, by the names of the suite. */
export const pinned = JSON.parse(readFileSync(new URL('versions.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, PinnedProgram>
>

/** Where the agents and the folders of runs are. Not in the folder for temporary files: Codex makes no helper programs there. */
export const cacheFolder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'agent-tasks', 'agents')

/**
 * @param isLatest whether the newest version is installed, in place of the pinned one
 * @throws Error if the program cannot be installed
 */
export async function install(one: PinnedProgram, isLatest: boolean): Promise<InstalledProgram> {
  const version = isLatest ? await latestOf(one.package) : one.version
  const folder = join(cacheFolder, `${one.package.replace(/[@/]+/g, '-').replace(/^-/, '')}-${version}`)
  const command = join(folder, 'node_modules', '.bin', one.program)
  if (!existsSync(command)) {
    mkdirSync(cacheFolder, { recursive: true })
    const fresh = mkdtempSync(join(cacheFolder, 'installing-'))
    try {
      await execute('npm', ['install', '--prefix', fresh, '--no-audit', '--no-fund', `${one.package}@${version}`], {
        cwd: fresh,
        timeout: 300_000,
      })
      rmSync(folder, { recursive: true, force: true })
      renameSync(fresh, folder)
    } finally {
      rmSync(fresh, { recursive: true, force: true })
    }
  }
  if (!existsSync(command)) throw new Error(`${one.package}@${version} has no program ${one.program}`)
  return { command, version }
}

async function latestOf(name: string): Promise<string> {
  const { stdout } = await execute('npm', ['view', name, 'version'], { timeout: 60_000 })
  return stdout.trim()
}
