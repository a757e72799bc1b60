/** The built MCP server runs the programs that its configuration allows, for a client that is another process. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { isAlive, until } from '../support/lifelines.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
}, 120_000)

interface Answer {
  readonly content: { readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly isError?: boolean
}

async function serve(commands: object) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-commands-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const config = join(folder, 'agent-tasks.config.json')
  writeFileSync(config, JSON.stringify({ commands }))
  const client = new Client({ name: 'tester', version: '1.0.0' })
  const args = [join(root, 'dist/src/cli/main.js'), 'mcp', '--config', config]
  await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd: folder, stderr: 'ignore' }))
  onTestFinished(() => client.close())
  const progress: string[] = []
  const run = async (line: string, more: object = {}) => {
    const call = { name: 'run_command', arguments: { command: 'sh', args: ['-c', line], ...more } }
    const {
      content,
      structuredContent,
      isError = false,
    } = (await client.callTool(call, {
      onprogress: ({ message = '' }) => progress.push(message),
    })) as Answer
    return { text: content[0]?.text ?? '', data: structuredContent, isError }
  }
  return { client, folder, run, progress }
}

it('F1: runs a program in the folder of the client, says how it failed, and stops what runs when the client has gone', async () => {
  const { client, folder, run, progress } = await serve({ allow: ['sh'], env: ['NAME'] })
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('run_command')

  const { text } = await run('pwd -P; echo "$NAME"', { env: { NAME: 'a name' } })
  expect(JSON.parse(text)).toMatchObject({ exit_code: 0, final_message: `${folder}\na name` })
  expect(await run('echo why >&2; exit 9')).toMatchObject({
    isError: true,
    text: expect.stringContaining('"exit_code": 9') as string,
  })
  expect((await run('true', { command: 'env' })).text).toContain('params.command: got "env", expected one of "sh".')
  expect((await run('true', { cwd: '/' })).text).toContain('expected a folder within')

  await run('echo working; sleep 1.5')
  expect(progress).toContain('working')

  const { data } = await run('echo $$; exec sleep 60', { async: true })
  const read = { name: 'read_task_output', arguments: { task_id: data?.['task_id'] } }
  let pid = 0
  while (!(pid > 0)) {
    const { content } = (await client.callTool(read)) as Answer
    pid = Number(/^(\d+)$/m.exec(content[0]?.text ?? '')?.[1])
  }
  expect(isAlive(pid)).toBe(true)
  await client.close()
  await until(() => !isAlive(pid))
}, 30_000)
