// The page of the commands that serve tasks, as processes: the link, what it shows, and how it ends.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import type { PageTaskDetail } from '../../src/page/wire.js'

const main = join(process.cwd(), 'dist/src/cli/main.js')

/** Starts a command line in an empty folder. */
function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { child: ChildProcess; stdout: () => string; stderr: () => string } {
  const cwd = mkdtempSync(join(tmpdir(), 'agent-tasks-page-'))
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(cwd, { recursive: true })
  })
  const written = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (written.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (written.stderr += chunk.toString()))
  return { child, stdout: () => written.stdout, stderr: () => written.stderr }
}

const LINK = /http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]+/

/** The first events of the stream of a page. */
async function eventsOf(link: string, isEnough: (text: string) => boolean): Promise<string> {
  const [base = '', token = ''] = link.split('/#token=')
  const response = await fetch(`${base}/api/events`, { headers: { authorization: `Bearer ${token}` } })
  expect(response.status).toBe(200)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    if (isEnough(text)) break
  }
  return text
}

it('serve --demo prints the link of a page on which there is something to see', { timeout: 60_000 }, async () => {
  const { child, stdout } = start(['serve', '--demo', '--port', '0', '--ws-port', '0', '--page-port', '0', '--json'])
  await expect.poll(stdout, { timeout: 30_000 }).toMatch(LINK)
  const { pageUrl } = JSON.parse(stdout()) as { pageUrl: string }
  // A question, a result that waits for the busy agent, one that was refused, and a failed task.
  const isEnough = (text: string): boolean =>
    ['"state":"asking"', '"state":"failed"', '"state":"busy"', '"state":"backing-off"'].every((part) =>
      text.includes(part),
    )
  const text = await eventsOf(pageUrl, isEnough)
  expect(text).toContain('"id":"calc"')
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

it('serve with tokens has a page whose curl takes the token from the environment', { timeout: 60_000 }, async () => {
  const args = ['serve', '--demo', '--port', '0', '--ws-port', '0', '--page-port', '0', '--json']
  const { stdout } = start(args, { AUTH_TOKENS: 'a-secret-of-the-server' })
  await expect.poll(stdout, { timeout: 30_000 }).toMatch(LINK)
  const { httpUrl, pageUrl } = JSON.parse(stdout()) as { httpUrl: string; pageUrl: string }
  const submitted = await fetch(`${httpUrl}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer a-secret-of-the-server' },
    body: JSON.stringify({ task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }),
  })
  const { taskId } = (await submitted.json()) as { taskId: string }
  const [base = '', token = ''] = pageUrl.split('/#token=')
  const read = await fetch(`${base}/api/tasks/command:${taskId}`, { headers: { authorization: `Bearer ${token}` } })
  const { copyAs } = (await read.json()) as PageTaskDetail
  expect(JSON.stringify(copyAs)).not.toContain('a-secret-of-the-server')
  const env = { ...process.env, AGENT_TASKS_TOKEN: 'a-secret-of-the-server' }
  const { stdout: answer } = await promisify(execFile)('sh', ['-c', copyAs.curl!], { env })
  expect(JSON.parse(answer)).toMatchObject({ taskId: expect.any(String) as unknown })
})

it(
  'serve --page-token-file keeps the token, so that the link of the page stays valid',
  { timeout: 90_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-token-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'token')
    const options = ['--port', '0', '--ws-port', '0', '--page-port', '0', '--page-token-file', file]
    const tokens: string[] = []
    for (const started of [1, 2]) {
      const { child, stdout } = start(['serve', '--json', ...options])
      await expect.poll(stdout, { timeout: 30_000 }).toMatch(LINK)
      const { pageUrl } = JSON.parse(stdout()) as { pageUrl: string }
      tokens.push(pageUrl.split('#token=')[1] ?? '')
      expect([started, statSync(file).mode & 0o777, readFileSync(file, 'utf8')]).toEqual([
        started,
        0o600,
        `${tokens[0]}\n`,
      ])
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    }
    expect(tokens[1]).toBe(tokens[0])
    chmodSync(file, 0o644)
    for (const command of [['serve'], ['mcp', '--page=0']]) {
      const given = command[0] === 'serve' ? options : options.slice(-2)
      const { child, stderr } = start([...command, ...given])
      expect(await once(child, 'exit')).toEqual([2, null])
      expect(stderr()).toContain('--page-token-file: got')
      expect(stderr()).toContain('chmod 600')
    }
  },
)

it('--trace-url that is no URL starts nothing', { timeout: 60_000 }, async () => {
  const { child, stderr } = start(['serve', '--trace-url', 'javascript:{trace_id}'])
  expect(await once(child, 'exit')).toEqual([2, null])
  expect(stderr()).toContain('--trace-url: got "javascript:{trace_id}"')
})

it('serve --no-page has none', { timeout: 60_000 }, async () => {
  const { stdout } = start(['serve', '--demo', '--port', '0', '--ws-port', '0', '--no-page'])
  await expect.poll(stdout, { timeout: 30_000 }).toContain('node --input-type')
  expect(stdout()).not.toMatch(LINK)
})

it(
  'mcp --page prints the link to standard error, and nothing but MCP to standard output',
  { timeout: 60_000 },
  async () => {
    const { child, stdout, stderr } = start(['mcp', '--page=0'])
    await expect.poll(stderr, { timeout: 30_000 }).toMatch(LINK)
    expect(await eventsOf(LINK.exec(stderr())?.[0] ?? '', (text) => text.includes('event: ready'))).toContain(
      '"hasAsync":true',
    )
    expect(stdout()).toBe('')
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
    await expect.poll(stdout, { timeout: 10_000 }).toContain('"id":1')
    for (const line of stdout().trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
    child.stdin!.end()
    expect(await once(child, 'exit')).toEqual([0, null])
  },
)

it('mcp --page with a port that is in use starts nothing', { timeout: 60_000 }, async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const { child, stderr } = start(['mcp', `--page=${port}`])
  expect(await once(child, 'exit')).toEqual([2, null])
  expect(stderr()).toContain(`got ${port}, expected a port that is free`)
})
