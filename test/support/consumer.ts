/**
 * Uses the package as someone who installed it does: packs it, installs the tarball in an empty project and runs small
 * programs there. Needs `npm run build` first.
 *
 * Checks that the tarball holds what it should, that a JavaScript and a TypeScript program run, that the types compile
 * under both module resolutions that ESM packages meet, and that importing a subpath prints nothing and lets the
 * process exit by itself.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
for (const subpath of Object.keys(manifest.exports)) checkImport(manifest.name + subpath.slice(1))

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
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  run('npm install', 'npm', ['install', ...options, `./${filename}`, `@types/node@${version}`])
  pass('it installs in an empty project')
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
