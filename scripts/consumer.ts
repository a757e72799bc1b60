/**
 * Uses the package as a user does: packs it, installs the tarball in an empty project, and runs small programs there. Needs `npm run build` first. It
 * checks that
 *
 * - the tarball has the right files;
 * - a JavaScript and a TypeScript program run;
 * - the types compile under both module resolutions for ESM packages;
 * - an import of a subpath prints nothing and lets the process exit;
 * - the race kit works with node:test and vitest;
 * - everything except the adapters works without the SDKs, and an adapter without its SDK says which package is missing;
 * - each adapter works with only its own SDK.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { adapters } from './adapter-programs.js'

type Manifest = { name: string; version: string; exports: Record<string, unknown> }
type Packed = { filename: string; files: { path: string }[] }

const root = fileURLToPath(new URL('../', import.meta.url))
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
import { toJsonSchemaTools } from 'agent-tasks/adapters/json-schema'
const agent = createAgentTasks({ maxAsyncTasks: 2 })
const listed = await toJsonSchemaTools(agent.tools).call('check_async_tasks', '{}')
if (listed.error !== undefined) throw new Error(listed.llmContent)
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

// A package that exports objects of this package. The compiler must be able to name every type in its declarations (docs/adr/0061).
const libraryProgram = `
import { createAgentTasks, functionRunner, processRunner } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { createTaskClient } from 'agent-tasks/client'
import { createInspector } from 'agent-tasks/inspect'
import { localInstance, mcpInstance, startTaskServer } from 'agent-tasks/server'
import { memoryStore, openStore, sqliteStore } from 'agent-tasks/store'
import { recordDeliveryLog } from 'agent-tasks/testing/ledger'
export const turns = createTurns(async (text: string) => text)
export const tasks = createAgentTasks({
  subagents: { echo: () => 'text', report: () => ({ lines: 3 }), shout: processRunner({ command: 'shout' }) },
  commands: { allow: ['npm'] },
  schedules: {},
  monitors: {},
  isAgentBusy: turns.isBusy$,
  triggerAgentTurn: turns.triggerAgentTurn,
})
export const handle = tasks.launch('report', 'goal')
export const result = handle.result
export const { tools, manager, reminders } = tasks
export const waited = manager.waitFor([handle.id])
export const log = recordDeliveryLog(manager)
export const runner = functionRunner(() => 'text')
export const stores = [sqliteStore('tasks.db'), memoryStore()]
export const opened = openStore(memoryStore())
export const server = startTaskServer()
export const instances = [localInstance({ id: 'a', tools: [] }), mcpInstance({ id: 'b', command: 'b' })]
export const client = createTaskClient({ url: 'http://127.0.0.1:3300' })
export const submitted = client.submit({ task_name: 'Add', commands: [{ tool_name: 'add', args: {} }] })
export const page = client.list()
export const watched = client.watch('a')
export const inspector = createInspector()
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
// The first resolution also checks every declaration file of the package. With exactOptionalPropertyTypes, as in the second one, the declarations of
// XState would fail that check.
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
const withPeers = {
  './telemetry': ['@opentelemetry/api'],
  './bullmq': ['bullmq', 'ioredis'],
  './acp': ['@agentclientprotocol/sdk'],
} as const
const needy = ['./testing', ...Object.keys(withPeers), ...Object.keys(adapters).map((name) => `./adapters/${name}`)]
for (const subpath of Object.keys(manifest.exports)) {
  if (!needy.includes(subpath)) checkImport(manifest.name + subpath.slice(1))
}
checkAdapters()
const cli = join('node_modules', manifest.name, 'dist/src/cli/main.js')
const printed = run('agent-tasks extension', process.execPath, [cli, 'extension'])
if (!printed.includes(join(manifest.name, 'dist', 'extension'))) fail(`agent-tasks extension printed '${printed}'`)
pass('agent-tasks extension names its folder')
const serve = [cli, 'serve', '--connection', 'redis://127.0.0.1']
expectFailure('serve --connection without its packages', serve, ['npm install bullmq@6 ioredis@5'])
for (const [subpath, peers] of Object.entries(withPeers)) checkPeers(manifest.name + subpath.slice(1), peers)
install(['fast-check', 'vitest'])
checkImport(`${manifest.name}/testing`)
checkRaceKit()

function pack(): string {
  const [packed] = JSON.parse(
    run('npm pack', 'npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], root),
  ) as Packed[]
  if (!packed) return fail('npm pack made no tarball')
  const paths = packed.files.map(({ path }) => path)
  for (const wanted of [
    'README.md',
    'LICENSE',
    'package.json',
    'dist/src/index.js',
    'dist/src/index.d.ts',
    'dist/page/index.html',
    'dist/extension/manifest.json',
    'dist/agent-tasks-extension.zip',
  ]) {
    if (!paths.includes(wanted)) fail(`the tarball lacks ${wanted}`)
  }
  const belongs =
    /^(dist\/(src|machines|chunks|page|extension)\/.*|dist\/agent-tasks-extension\.zip|docs\/.*|machines\/.*\.ts|(README|CHANGELOG|CONTRIBUTING)\.md|LICENSE|package\.json|agent-tasks\.config\.schema\.json)$/
  const strays = paths.filter((path) => !belongs.test(path) || /\.test\./.test(path))
  if (strays.length > 0) fail(`the tarball holds ${strays.join(', ')}`)
  pass(`the tarball holds ${paths.length} files, no tests`)
  return packed.filename
}

function installInEmptyProject(filename: string): void {
  const { version } = createRequire(import.meta.url)('@types/node/package.json') as Manifest
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm install', 'npm', ['install', ...installOptions, `./${filename}`, `@types/node@${version}`])
  pass('the package installs in an empty project')
}

/** Installs packages in the versions that this repository has. */
function install(names: string[]): void {
  const resolve = createRequire(import.meta.url)
  const wanted = names.map((name) => `${name}@${(resolve(`${name}/package.json`) as Manifest).version}`)
  run(`npm install ${wanted.join(' ')}`, 'npm', ['install', ...installOptions, ...wanted])
  pass(`${wanted.join(' and ')} are installed beside the package`)
}

/** Checks the examples of docs/testing.md, and a printed regression test. That test must fail with the bug, and pass without it. */
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
  run('a failing race', process.execPath, ['kit/lose.js'], project, 30_000)
  const printed = readFileSync(join(project, 'kit/regression.test.js'), 'utf8')
  if (spawnSync(process.execPath, ['--test', 'kit/regression.test.js'], { cwd: project }).status === 0) {
    fail('the printed test passes with the bug')
  }
  write('kit/regression.test.js', printed.replace('{ naiveTrigger }', '{ autoTrigger as naiveTrigger }'))
  run('the printed test without the bug', process.execPath, ['--test', 'kit/regression.test.js'], project, 30_000)
  pass('the printed regression test fails with the bug and passes without it')

  const vitest = join(project, 'node_modules/vitest/vitest.mjs')
  write('vitest.config.js', `export default { test: { include: ['kit/with-vitest.js'] } }`)
  run('vitest', process.execPath, [vitest, 'run', '--reporter=dot'], project, 60_000)
  pass('the race kit runs in vitest')
}

function checkTypeScript(): void {
  write('program.ts', typeScriptProgram)
  for (const resolution of resolutions) {
    const outDir = `out-${resolution.module}`
    run(`tsc with ${resolution.moduleResolution}`, process.execPath, compile(['program.ts'], { ...resolution, outDir }))
    expectOutput(`a TypeScript program, ${resolution.moduleResolution}`, [`${outDir}/program.js`], 'a completed')
  }
  write('library.ts', libraryProgram)
  const library = { ...resolutions[0], skipLibCheck: true, declaration: true, outDir: 'out-library' }
  run('tsc of a package that exports a host', process.execPath, compile(['library.ts'], library))
}

/** The arguments with which Node runs the TypeScript compiler. */
function compile(files: readonly string[], options: object): string[] {
  write('tsconfig.json', JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, files }))
  return [createRequire(import.meta.url).resolve('typescript/bin/tsc'), '-p', 'tsconfig.json']
}

/** Checks that an adapter without its SDK names the missing package, at run time and at compile time, and that it works with only its own SDK. */
function checkAdapters(): void {
  const specifierOf = (name: string) => `${manifest.name}/adapters/${name}`
  const all = Object.entries(adapters)
  write('bare.ts', all.map(([name]) => `import '${specifierOf(name)}'`).join('\n'))
  const missing = all.map(([, { peer }]) => `Cannot find module '${peer}`)
  expectFailure('tsc of the adapters without peers', compile(['bare.ts'], { ...resolutions[0], noEmit: true }), missing)
  for (const [name, { peer }] of all) {
    const load = ['--input-type=module', '--eval', `await import('${specifierOf(name)}')`]
    expectFailure(`import '${specifierOf(name)}' without ${peer}`, load, [`Cannot find package '${peer}'`])
  }

  for (const [, { peer }] of all) link(peer)
  const before = `import { createAgentTasks } from '${manifest.name}'\nconst agent = createAgentTasks()`
  for (const [name, { program }] of all) write(`${name}.ts`, before + program)
  // The declarations of the SDKs are not checked, because they are not ours.
  const options = { ...resolutions[0], skipLibCheck: true, outDir: 'out-adapters' }
  const files = all.map(([name]) => `${name}.ts`)
  run('tsc of the adapters with peers', process.execPath, compile(files, options))
  for (const [, { peer }] of all) unlink(peer)
  for (const [name, { peer, output }] of all) {
    link(peer)
    expectOutput(`a program with ${specifierOf(name)} and ${peer} alone`, [`out-adapters/${name}.js`], output, 30_000)
    unlink(peer)
  }
}

/** Checks that an import fails with the name of the package if one of its peers is missing, and that it needs only these peers. */
function checkPeers(specifier: string, peers: readonly string[]): void {
  const load = ['--input-type=module', '--eval', `await import('${specifier}')`]
  for (const peer of peers) link(peer)
  for (const peer of peers) {
    unlink(peer)
    expectFailure(`import '${specifier}' without ${peer}`, load, [`Cannot find package '${peer}'`])
    link(peer)
  }
  checkImport(specifier)
  for (const peer of peers) unlink(peer)
}

/** Links a package from the node_modules of this repository. */
function link(peer: string): void {
  const path = join(project, 'node_modules', peer)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(join(root, 'node_modules', peer), path)
}

function unlink(peer: string): void {
  rmSync(join(project, 'node_modules', peer))
}

/** Imports a subpath in a process, which must print nothing and exit by itself. */
function checkImport(specifier: string): void {
  const attributes = specifier.endsWith('.json') ? `, { with: { type: 'json' } }` : ''
  const program = `await import('${specifier}'${attributes})`
  expectOutput(`import '${specifier}'`, ['--no-warnings', '--input-type=module', '--eval', program], '')
}

function expectFailure(what: string, args: string[], wanted: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: project,
    timeout: 60_000,
    encoding: 'utf8',
  })
  const said = stdout + stderr
  if (status === 0 || !wanted.every((text) => said.includes(text))) {
    fail(`${what} ended with ${status ?? 'a signal'} and said:\n${said}`)
  }
  pass(`${what} fails with the expected message`)
}

function expectOutput(what: string, args: string[], wanted: string, timeout = 5_000): void {
  const printed = run(what, process.execPath, args, project, timeout).trim()
  if (printed !== wanted) fail(`${what} printed '${printed}', not '${wanted}'`)
  pass(`${what} runs and exits by itself`)
}

/** Runs a command and returns its output. Exits with a message when the command fails or hangs. */
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
