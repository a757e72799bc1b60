/** Where configured subagents run: programs that print their working directory. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { until } from '../../support/lifelines.js'

interface Message {
  readonly id: number
  readonly method?: string
  readonly result?: { readonly content: { readonly text: string }[]; readonly tools: { inputSchema: unknown }[] }
}

/** A client with these roots; undefined: it does not declare the capability. */
async function connect(roots: readonly string[] | undefined) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-cwd-')))
  for (const name of ['config', 'project', 'server', 'project/inner']) mkdirSync(join(folder, name))
  const program = { description: 'd', command: process.execPath, args: ['-e', 'console.log(process.cwd())'] }
  const [input, output] = [new PassThrough(), new PassThrough()]
  const server = startMcpStdioServer({
    input,
    output,
    writeLog: () => undefined,
    folder: join(folder, 'config'),
    projectFolder: join(folder, 'server'),
    config: {
      subagents: [
        { ...program, name: 'plain' },
        { ...program, name: 'fixed', cwd: '.' },
        { ...program, name: 'free', cwdPerCall: true },
      ],
    },
  })
  onTestFinished(async () => {
    await server.close()
    rmSync(folder, { recursive: true })
  })
  const answers = new Map<number, Message>()
  const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  createInterface({ input: output }).on('line', (line) => {
    const message = JSON.parse(line) as Message
    if (message.method === 'roots/list') {
      const uris = (roots ?? []).map((root) => ({
        uri: pathToFileURL(join(folder, root)).href,
      }))
      say({ id: message.id, result: { roots: uris } })
    } else if (message.method === undefined) answers.set(message.id, message)
  })
  let lastId = 0
  const ask = async (method: string, params: object) => {
    const id = ++lastId
    say({ id, method, params })
    await until(() => answers.has(id))
    return answers.get(id)!.result!
  }
  const capabilities = roots === undefined ? {} : { roots: {} }
  const clientInfo = { name: 'raw', version: '1' }
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
  const run = async (subagent_name: string, more: object = {}) => {
    const call = { name: 'task', arguments: { subagent_name, goal_prompt: 'g', ...more } }
    return (await ask('tools/call', call)).content[0]!.text.replaceAll(folder, '')
  }
  return { run, ask }
}

it.each([
  ['of the server, for a client without roots', undefined, '/server'],
  ['of the first root that exists', ['gone', 'project'], '/project'],
  ['of the server, for a client whose roots do not exist', ['gone'], '/server'],
])('a subagent without a cwd runs in the directory %s', async (_which, roots, expected) => {
  const { run } = await connect(roots)
  expect(await run('plain')).toContain(`"${expected}"`)
  expect(await run('fixed')).toContain('"/config"')
})

it('a call names a directory only where the configuration allows it, and only one that exists', async () => {
  const { run, ask } = await connect(['project'])
  expect(await run('free', { cwd: 'inner' })).toContain('"/project/inner"')
  expect(await run('free', { cwd: 'nowhere' })).toContain(
    'params.cwd: got "nowhere", expected a directory that exists.',
  )
  expect(await run('free', { cwd: 7 })).toContain('params.cwd: got 7, expected the path of a directory.')
  expect(await run('plain', { cwd: 'inner' })).toContain(
    'expected no cwd, because the configuration of the subagent does not set cwdPerCall',
  )
  expect(JSON.stringify((await ask('tools/list', {})).tools[0]!.inputSchema)).toContain('"cwd"')
})
