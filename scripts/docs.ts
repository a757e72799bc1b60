/**
 * `npm run docs:run`: compiles and runs every TypeScript block of README and docs/, and every session of docs/examples/sessions/. It also checks every
 * JSON block. `jsonl` blocks contain messages of the wire protocol, and the documents must show every type of message. Needs `npm run build` first,
 * because the programs import the package by its name.
 *
 * Each program runs in its own folder and must exit by itself with code 0. If its text names port 3300, the program uses a demo server on a free port
 * instead. A block marked `continue` continues the block before it. A block marked `browser` is only compiled here, because the end-to-end tests run it.
 * Blocks in other languages are ignored.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startTaskServer } from '../src/server/start-task-server.js'
import { createDemoInstance } from '../src/cli/demo-instance.js'
import { clientMessageSchema, serverMessageSchema } from '../src/protocol/client-messages.js'
import {
  registerRequestSchema,
  registerResponseSchema,
  serverToWorkerSchema,
  workerMessageSchema,
} from '../src/protocol/instance-messages.js'
import { readBlocks, readPrograms, type DocProgram } from './doc-blocks.js'
import { documents } from './site/documents.js'

/** The schema for the lines of a `jsonl` block, by the word after `jsonl`. */
const messages = {
  client: clientMessageSchema,
  server: serverMessageSchema,
  worker: workerMessageSchema,
  'to-worker': serverToWorkerSchema,
  'register-request': registerRequestSchema,
  'register-response': registerResponseSchema,
} as const

/** The time limit of a program, in ms. */
const LIMIT_MS = 60_000
const root = fileURLToPath(new URL('../', import.meta.url))
// Inside the repository, so that Node finds the package by its name.
const folder = join(root, 'reports', 'docs')

process.chdir(root)
const files = documents().filter((file) => !file.startsWith('docs/reference/'))
const blocks = files.flatMap((file) => readBlocks(file, readFileSync(join(root, file), 'utf8')))
const failures: string[] = []
/** The types of messages that were found in the documents. */
const seen = new Set<string>()

checkJson()
const server = await startTaskServer({
  port: 0,
  tasks: { wsPort: 0 },
  instances: [createDemoInstance()],
  env: {},
  logLevel: 'silent',
})
const programs = files
  .flatMap((file) => readPrograms(blocks.filter((block) => block.file === file)))
  .map((program) => ({ ...program, path: write(program) }))
const sessions = list('docs/examples/sessions').map((file) => ({ file, line: 1, text: '', path: join(root, file) }))
compile()
if (failures.length === 0) await runAll(2)
await server.close()

for (const failure of failures) console.error(`docs: FAILED: ${failure}`)
console.log(
  `docs: ${programs.length} programs of ${files.length} documents, ${sessions.length} sessions, ${failures.length} failed`,
)
process.exit(failures.length === 0 ? 0 : 1)

function list(name: string): string[] {
  return readdirSync(join(root, name), { recursive: true, encoding: 'utf8' })
    .map((path) => join(name, path))
    .sort()
}

function checkJson(): void {
  for (const { file, line, language, flags, text } of blocks) {
    try {
      if (language === 'json') JSON.parse(text)
      if (language === 'jsonl') for (const message of text.split('\n')) checkMessage(flags[0], JSON.parse(message))
    } catch (error) {
      failures.push(`${file}:${line}: ${(error as Error).message}`)
    }
  }
  for (const [name, schema] of Object.entries(messages)) {
    if (!('options' in schema)) continue
    const missing = schema.options
      .map((option) => option.shape.type.value)
      .filter((type) => !seen.has(`${name} ${type}`))
    if (missing.length > 0) failures.push(`no document shows these messages of '${name}': ${missing.join(', ')}`)
  }
}

/** @throws when a line does not match the schema of its block */
function checkMessage(name: string | undefined, message: unknown): void {
  if (name === undefined || !Object.hasOwn(messages, name)) {
    throw new Error(`got '${name ?? ''}' after jsonl, expected one of ${Object.keys(messages).join(', ')}`)
  }
  // The schema ignores unknown fields, but a document must not show one.
  const parsed: unknown = messages[name as keyof typeof messages].parse(message)
  for (const field of Object.keys(message as object)) {
    if (!Object.hasOwn(parsed as object, field)) throw new Error(`the schema has no field ${field}`)
  }
  seen.add(`${name} ${String((message as { type?: unknown }).type)}`)
}

function write({ file, line, text }: DocProgram): string {
  const path = join(folder, `${file.replace(/\W+/g, '-')}-${line}`, 'program.ts')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text.replaceAll('http://127.0.0.1:3300', server.httpUrl))
  return path
}

function compile(): void {
  const { options } = { options: { noUnusedLocals: false, rootDir: root, noEmit: true } }
  const config = join(folder, 'tsconfig.json')
  const content = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: options,
    include: [],
    files: programs.map(({ path }) => path),
  }
  writeFileSync(config, JSON.stringify(content))
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', config], { cwd: root, encoding: 'utf8' })
  if (status !== 0) failures.push(`the programs do not compile\n${stdout}`)
}

async function runAll(atOnce: number): Promise<void> {
  const needsBrowser = ({ file, line }: DocProgram): boolean =>
    blocks.some((block) => block.file === file && block.line === line && block.flags.includes('browser'))
  const waiting = [...programs, ...sessions].filter((program) => !needsBrowser(program))
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

async function run({ file, line, path }: DocProgram & { path: string }): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', path], {
    cwd: dirname(path),
    // A program that stores its state for the next start stores it in its own folder.
    env: { ...process.env, XDG_STATE_HOME: dirname(path) },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on('close', (...end) => resolve(end)),
  )
  const name = `${file}:${line}`
  if (code === 0) console.log(`docs: ${name} runs`)
  else failures.push(`${name} ended with ${code ?? signal ?? 'nothing'}\n${printed}`)
}

process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
