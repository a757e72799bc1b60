/**
 * Uses the package as someone who installed it does: packs it, installs the tarball in an empty project and runs small
 * programs there. Needs `npm run build` first.
 *
 * Checks that the tarball holds what it should, that a JavaScript and a TypeScript program run, that the types compile
 * under both module resolutions that ESM packages meet, that importing a subpath prints nothing and lets the
 * process exit by itself, and that the race kit works with node's own test runner and with vitest.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

type Manifest = { name: string; version: string; exports: Record<string, unknown> }
type Packed = { filename: string; files: { path: string }[] }

const root = fileURLToPath(new URL('../../', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest

const javaScriptProgram = `
import { AsyncTaskManager } from 'agent-tasks'
const manager = new AsyncTaskManager(2)
const seen = []
const off = manager.onTaskCompleted((task) => seen.push(task.id, task.status, task.output.final_message))
manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'do it', abortController: new AbortController() })
manager.completeTask('a', { final_message: 'done' })
off()
await manager.dispose()
console.log(seen.join(' '))
`

const typeScriptProgram = `
import { createAgentTasks, processRunner, type AsyncTaskInfo } from 'agent-tasks'
const agent = createAgentTasks({ maxAsyncTasks: 2 })
const manager = agent.getAsyncTaskManager()
const ended: AsyncTaskInfo[] = []
const off = manager.onTaskCompleted((task) => { ended.push(task) })
const run = processRunner({ command: process.execPath, args: ['-e', 'console.log("done")'] })
manager.launch({ id: 'a', subagentName: 'helper', goalPrompt: 'do it' }, run)
await manager.waitFor(['a'], { mode: 'all' })
off()
await agent.dispose()
console.log(ended.map((task) => \`\${task.id} \${task.status}\`).join())
`

const losingProgram = `
import { writeFileSync } from 'node:fs'
import { exploreRaces } from 'agent-tasks/testing'
import { naiveTrigger } from './lost-completion.js'
const error = await exploreRaces(naiveTrigger).catch((error) => error)
writeFileSync('kit/regression.test.js', error.regressionTest)
`

const installOptions = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
const compilerOptions = { target: 'es2023', lib: ['es2023'], types: ['node'], strict: true }
// The first also checks every declaration file that the package brings. Under the second's exactOptionalPropertyTypes,
// which a consumer may have, XState's own declarations do not pass such a check.
const resolutions = [
  { module: 'nodenext', moduleResolution: 'nodenext', skipLibCheck: false },
  { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true, exactOptionalPropertyTypes: true },
]

const project = mkdtempSync(join(tmpdir(), `${manifest.name}-consumer-`))
process.on('exit', () => rmSync(project, { recursive: true, force: true }))

const tarball = pack()
installInEmptyProject(tarball)
write('program.js', javaScriptProgram)
expectOutput('a JavaScript program', ['program.js'], 'a completed done')
checkTypeScript()
const subpaths = Object.keys(manifest.exports)
for (const subpath of subpaths.filter((one) => one !== './testing')) checkImport(manifest.name + subpath.slice(1))
install(['fast-check', 'vitest'])
checkImport(`${manifest.name}/testing`)
checkRaceKit()

function pack(): string {
  const [packed] = JSON.parse(
    run('npm pack', 'npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], root),
  ) as Packed[]
  if (!packed) return fail('npm pack made no tarball')
  const paths = packed.files.map(({ path }) => path)
  for (const wanted of ['README.md', 'LICENSE', 'package.json', 'dist/src/index.js', 'dist/src/index.d.ts']) {
    if (!paths.includes(wanted)) fail(`the tarball lacks ${wanted}`)
  }
  const belongs = /^(dist\/(src|machines)\/.*|README\.md|LICENSE|package\.json)$/
  const strays = paths.filter((path) => !belongs.test(path) || /\.test\./.test(path))
  if (strays.length > 0) fail(`the tarball holds ${strays.join(', ')}`)
  pass(`the tarball holds ${paths.length} files, no tests`)
  return packed.filename
}

function installInEmptyProject(filename: string): void {
  const { version } = createRequire(import.meta.url)('@types/node/package.json') as Manifest
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm install', 'npm', ['install', ...installOptions, `./${filename}`, `@types/node@${version}`])
  pass('it installs in an empty project')
}

/** Installs the versions that this repository uses. */
function install(names: string[]): void {
  const resolve = createRequire(import.meta.url)
  const wanted = names.map((name) => `${name}@${(resolve(`${name}/package.json`) as Manifest).version}`)
  run(`npm install ${wanted.join(' ')}`, 'npm', ['install', ...installOptions, ...wanted])
  pass(`with it, ${wanted.join(' and ')} are installed`)
}

/** The examples of docs/testing.md, and the test that a lost race prints: it must fail on what is wrong and pass on what is right. */
function checkRaceKit(): void {
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  for (const name of ['lost-completion.ts', 'with-node-test.ts', 'with-vitest.ts']) {
    cpSync(join(root, 'docs/examples/testing', name), join(project, 'kit', name))
  }
  const kitOptions = { ...compilerOptions, module: 'nodenext', moduleResolution: 'nodenext', skipLibCheck: true }
  write('tsconfig.json', JSON.stringify({ compilerOptions: kitOptions, include: ['kit'] }))
  run('tsc of the race kit', process.execPath, [compiler, '-p', 'tsconfig.json'])
  run('node --test', process.execPath, ['--test', 'kit/with-node-test.js'], project, 30_000)
  pass('the race kit runs in node:test')

  write('kit/lose.js', losingProgram)
  run('a lost race', process.execPath, ['kit/lose.js'], project, 30_000)
  const printed = readFileSync(join(project, 'kit/regression.test.js'), 'utf8')
  if (spawnSync(process.execPath, ['--test', 'kit/regression.test.js'], { cwd: project }).status === 0) {
    fail('the printed test passes on the code that is wrong')
  }
  write('kit/regression.test.js', printed.replace('{ naiveTrigger }', '{ autoTrigger as naiveTrigger }'))
  run('the printed test, on what is right,', process.execPath, ['--test', 'kit/regression.test.js'], project, 30_000)
  pass('the test that a lost race prints fails on what is wrong and passes on what is right')

  const vitest = join(project, 'node_modules/vitest/vitest.mjs')
  write('vitest.config.js', `export default { test: { include: ['kit/with-vitest.js'] } }`)
  run('vitest', process.execPath, [vitest, 'run', '--reporter=dot'], project, 60_000)
  pass('the race kit runs in vitest')
}

function checkTypeScript(): void {
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  write('program.ts', typeScriptProgram)
  for (const resolution of resolutions) {
    const outDir = `out-${resolution.module}`
    write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions: { ...compilerOptions, ...resolution, outDir }, files: ['program.ts'] }),
    )
    run(`tsc with ${resolution.moduleResolution}`, process.execPath, [compiler, '-p', 'tsconfig.json'])
    expectOutput(`a TypeScript program, ${resolution.moduleResolution}`, [`${outDir}/program.js`], 'a completed')
  }
}

/** Nothing may be printed, and nothing kept alive: the process ends by itself. */
function checkImport(specifier: string): void {
  const attributes = specifier.endsWith('.json') ? `, { with: { type: 'json' } }` : ''
  const program = `await import('${specifier}'${attributes})`
  expectOutput(`import '${specifier}'`, ['--no-warnings', '--input-type=module', '--eval', program], '')
}

function expectOutput(what: string, args: string[], wanted: string): void {
  const printed = run(what, process.execPath, args, project, 5_000).trim()
  if (printed !== wanted) fail(`${what} printed '${printed}', not '${wanted}'`)
  pass(`${what} runs and exits by itself`)
}

/** Runs a command and answers what it printed; the process ends with a message when the command fails or hangs. */
function run(what: string, command: string, args: string[], cwd = project, timeout = 300_000): string {
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, { cwd, timeout, encoding: 'utf8' })
  if (status === 0) return stdout
  if (error && 'code' in error && error.code === 'ETIMEDOUT') fail(`${what} did not end within ${timeout} ms`)
  return fail(`${what} failed (${error?.message ?? signal ?? `exit ${status ?? 'unknown'}`})\n${stdout}${stderr}`)
}

function write(name: string, text: string): void {
  writeFileSync(join(project, name), text)
}

function pass(what: string): void {
  console.log(`consumer: ${what}`)
}

function fail(why: string): never {
  console.error(`consumer: FAILED: ${why}`)
  process.exit(1)
}
