// Installing without a registry's copy of this package: from the tarball of `npm pack`, and from a git URL, which builds it. README's first program runs.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { readBlocks, readPrograms } from '../../scripts/doc-blocks.js'

const root = process.cwd()
const execute = promisify(execFile)

/** A git dependency installs its development dependencies and is built. */
const LIMIT_MS = 900_000

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-install-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs npm as a user does: this test may itself run in an npm script, whose variables are of another package. */
async function npm(cwd: string, ...args: string[]): Promise<string> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command)/.test(name) && name !== 'INIT_CWD' && name !== 'NODE_ENV',
  )
  const env = Object.fromEntries(inherited)
  const { stdout } = await execute('npm', args, { cwd, env, timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

/** Installs the package in an empty project, and runs the first program of README there. */
async function runFirstProgram(specifier: string): Promise<string> {
  const project = emptyFolder()
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  await npm(project, 'install', '--prefer-offline', '--loglevel=error', '--allow-git=root', specifier)
  const readme = readPrograms(readBlocks('README.md', readFileSync(join(root, 'README.md'), 'utf8')))
  const program = readme.find(({ text }) => text.includes("from 'agent-tasks'"))
  if (program === undefined) throw new Error('README has no program that imports agent-tasks')
  const { code } = await transform(program.text, { loader: 'ts', format: 'esm' })
  writeFileSync(join(project, 'program.js'), code)
  const { stdout, stderr } = await execute(process.execPath, ['program.js'], { cwd: project, timeout: 60_000 })
  expect(stderr).toBe('')
  return stdout
}

it('the tarball of npm pack has what was built, and runs', { timeout: LIMIT_MS }, async () => {
  const folder = emptyFolder()
  const packed = await npm(root, 'pack', '--json', '--pack-destination', folder)
  const [tarball] = JSON.parse(packed) as { readonly filename: string; readonly files: { readonly path: string }[] }[]
  expect(tarball?.files.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['dist/src/index.js', 'dist/src/cli/main.js', 'dist/page/index.html']),
  )
  expect(await runFirstProgram(join(folder, tarball?.filename ?? ''))).not.toBe('')
})

it('a git URL is built while it is installed, and runs', { timeout: LIMIT_MS }, async () => {
  const repository = join(emptyFolder(), 'agent-tasks.git')
  await execute('git', ['clone', '--quiet', '--bare', root, repository])
  expect(await runFirstProgram(`git+file://${repository}`)).not.toBe('')
})
