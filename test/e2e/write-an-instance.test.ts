/** The three programs of docs/write-an-instance.md: a server, a worker and a client, each a process of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { readBlocks } from '../../scripts/doc-blocks.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const document = 'docs/write-an-instance.md'

/** Writes the programs into a folder of the repository, from which packages resolve. Returns the folder. */
function writePrograms(): string {
  mkdirSync(join(root, 'reports'), { recursive: true })
  const folder = mkdtempSync(join(root, 'reports', 'instance-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const programs = readBlocks(document, readFileSync(join(root, document), 'utf8')).filter(
    ({ language }) => language === 'ts',
  )
  const source = (name: string): string => `'${new URL(`../../src/${name}/index.js`, import.meta.url).href}'`
  for (const [index, name] of ['server', 'worker', 'client'].entries()) {
    const text = programs[index]!.text.replace(/'agent-tasks\/(\w+)'/g, (_, entry: string) => source(entry))
    writeFileSync(join(folder, `${name}.ts`), text)
  }
  return folder
}

interface Program {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
  /** Resolves with everything printed once that matches. Rejects when the program ends before. */
  until(pattern: RegExp): Promise<string>
}

function run(folder: string, name: string, env: Readonly<Record<string, string>>): Program {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), `${name}.ts`], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let printed = ''
  const waiting = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      printed += part
      for (const look of waiting) look()
    })
  }
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const until = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (pattern.test(printed)) resolve(printed)
      }
      waiting.add(look)
      look()
      void ended.then(() => reject(new Error(`${name} ended without ${pattern}:\n${printed}`)))
    })
  return { child, ended, until }
}

it(
  'the programs of docs/write-an-instance.md run a command, fail one and cancel one',
  { timeout: 120_000 },
  async () => {
    const folder = writePrograms()
    const server = run(folder, 'server', { PORT: '0', TASKS_WS_PORT: '0' })
    const [, url = ''] = /server at (\S+)/.exec(await server.until(/server at \S+\n/)) ?? []
    const worker = run(folder, 'worker', { AGENT_TASKS_URL: url })
    await worker.until(/connected\n/)
    const client = run(folder, 'client', { AGENT_TASKS_URL: url })
    const printed = await client.until(/wait cancelled .*\n/)
    expect(printed).toMatch(/^checksum (\d+) of \1\n/)
    expect(printed).toMatch(/\nchecksum completed \{"content":\[\{"type":"text","text":"[0-9a-f]{64}"\}\]\}\n/)
    expect(printed).toContain(
      `\nchecksum failed {"code":"ENOENT","message":"ENOENT: no such file or directory, stat 'missing.txt'"}\n`,
    )
    expect(printed).toMatch(/\nwait 1 of 60\nwait cancelled \{"code":"CANCELLED","message":"Task cancelled"\}\n$/)
    expect(await client.ended).toEqual([0, null])
    worker.child.kill('SIGTERM')
    expect(await worker.ended).toEqual([0, null])
    server.child.kill('SIGTERM')
    await server.ended
    const block = readBlocks(document, readFileSync(join(root, document), 'utf8')).find(({ text }) =>
      text.startsWith('checksum '),
    )
    const shown = block!.text.replace(/\d+ of \d+/, 'N of N').replace(/82da3a98…/, 'HASH')
    expect(
      printed
        .trim()
        .replace(/\d+ of \d+/, 'N of N')
        .replace(/[0-9a-f]{64}/, 'HASH'),
    ).toBe(shown)
  },
)
