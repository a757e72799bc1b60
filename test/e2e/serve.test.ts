// The server as a process: the commands it suggests, draining on SIGTERM, and errors at start.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openSocket } from '../support/socket-client.js'

interface Served {
  readonly child: ChildProcess
  readonly httpUrl: string
  readonly wsUrl: string
  /** What it printed to try, line by line. */
  readonly introduction: string[]
  readonly exited: Promise<unknown>
}

function spawnServer(env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, ['dist/src/cli/main.js', 'serve', '--demo'], {
    env: { PATH: process.env['PATH'], PORT: '0', TASKS_WS_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function serve(env: Record<string, string> = {}): Promise<Served> {
  const child = spawnServer(env)
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as unknown)
  const introduction: string[] = []
  for await (const line of createInterface({ input: child.stdout! })) {
    introduction.push(line)
    if (line.includes('node --input-type')) break
  }
  const [, httpUrl = '', wsUrl = ''] = /REST at (\S+) .* sockets at (\S+)\./.exec(introduction[0] ?? '') ?? []
  return { child, httpUrl, wsUrl, introduction, exited }
}

async function configFile(values: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'config.json')
  await writeFile(path, JSON.stringify(values))
  return path
}

const slow = (seconds: number) => ({
  type: 'task_submit',
  task_name: 'slow',
  commands: [{ tool_name: 'slow', args: { seconds, steps: 10 } }],
})

/** The package as npm installs it, in an empty folder. */
async function installPacked(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
  folders.push(folder)
  const npm = (args: string[], cwd?: string) => promisify(execFile)('npm', args, { ...(cwd !== undefined && { cwd }) })
  await npm(['run', '--silent', 'built'])
  const { stdout } = await npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder])
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  await npm(['install', ...quiet, `./${filename}`], folder)
  return folder
}

const folders: string[] = []
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))))

/** Runs a pasted command and returns its output, by line. */
async function paste(line: string, cwd: string, env: Record<string, string> = {}): Promise<string[]> {
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', line], { cwd, env: { ...process.env, ...env } })
  expect(stderr).toBe('')
  return stdout.trim().split('\n')
}

const clientLine = ({ introduction }: Pick<Served, 'introduction'>): string =>
  introduction.find((line) => line.includes('node --input-type'))!

/** The events of a task of three commands. */
const followed = ['running', 'running 1', 'running 2', 'running 3', 'success']

describe('the commands of npm start and of the documents', () => {
  let empty: string
  beforeAll(async () => {
    empty = await installPacked()
  }, 120_000)

  it('the client command works in an empty folder with the package, and in the clone', async () => {
    const served = await serve()
    const expected = [...followed.map((step) => `task_progress ${step}`), 'task_complete completed']
    for (const folder of [empty, process.cwd()]) {
      const printed = await paste(clientLine(served), folder)
      expect([folder, printed.map((line) => line.trim())]).toEqual([folder, expected])
    }
  })

  it('the client command works when a token is required, without containing it', async () => {
    const served = await serve({ AUTH_TOKENS: 'a-token,another' })
    expect(clientLine(served)).not.toContain('a-token')
    const printed = await paste(clientLine(served), empty, { AUTH_TOKENS: 'a-token,another' })
    expect(printed.at(-1)!.trim()).toBe('task_complete completed')
  })

  it('the command and the program of the page for newcomers work unchanged, except for the port', async () => {
    const { httpUrl } = await serve()
    const page = (await readFile('docs/first-server.md', 'utf8')).replaceAll('http://127.0.0.1:3300', httpUrl)
    const [, curl = ''] = /```sh\n(curl [^]*?)\nnpx /.exec(page) ?? []
    expect(JSON.parse((await paste(curl, empty)).join(''))).toMatchObject({ queuePosition: 1 })
    const [, program = ''] = /```ts\n([^]*?)```/.exec(page) ?? []
    await writeFile(join(empty, 'try.mjs'), program)
    const { stdout } = await promisify(execFile)('node', ['try.mjs'], { cwd: empty })
    const printed = stdout.trim().split('\n')
    expect(printed.at(-1)).toBe('task_complete completed')
  })
})

describe('npm start', () => {
  it('prints a curl command that submits a task', async () => {
    const { introduction, exited, child } = await serve()
    const curl = introduction.find((line) => line.trim().startsWith('curl'))
    const { stdout } = await promisify(execFile)('sh', ['-c', curl!])
    expect(JSON.parse(stdout)).toMatchObject({ queuePosition: 1 })
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  it('prints a curl command that works when a token is required, without containing it', async () => {
    const { introduction } = await serve({ AUTH_TOKENS: 'a-token,another' })
    const curl = introduction.find((line) => line.trim().startsWith('curl'))
    expect(introduction.join()).not.toContain('a-token')
    const { stdout } = await promisify(execFile)('sh', ['-c', curl!], {
      env: { ...process.env, AUTH_TOKENS: 'a-token,another' },
    })
    expect(JSON.parse(stdout)).toMatchObject({ queuePosition: 1 })
  })

  it('lets a running task end on SIGTERM, cancels the queued one, sends both completes, and exits with 0', async () => {
    const { child, wsUrl, exited } = await serve()
    const client = await openSocket(wsUrl)
    const running = await client.ask(slow(1))
    const queued = await client.ask(slow(1))
    await client.skipTo('task_progress')
    child.kill('SIGTERM')
    expect(await client.skipTo('task_complete')).toMatchObject({ taskId: queued['taskId'], status: 'cancelled' })
    expect(await client.skipTo('task_complete')).toMatchObject({ taskId: running['taskId'], status: 'completed' })
    expect(await client.closed).toMatchObject({ code: 1001 })
    expect(await exited).toBe(0)
  })

  it('cancels a task on SIGTERM that takes longer than drainMs, sends its complete, and exits with 0', async () => {
    const { child, wsUrl, exited } = await serve({ CONFIG_FILE: await configFile({ tasks: { drainMs: 300 } }) })
    const client = await openSocket(wsUrl)
    await client.ask(slow(600))
    await client.skipTo('task_progress')
    child.kill('SIGTERM')
    expect(await client.skipTo('task_complete')).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } })
    expect(await exited).toBe(0)
  })

  it('serves HTTPS and WSS with a certificate', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    await promisify(execFile)('openssl', [
      ...'req -x509 -newkey rsa:2048 -nodes -days 1 -keyout'.split(' '),
      key,
      '-out',
      cert,
      ...subject,
    ])
    const { httpUrl, wsUrl, introduction, child, exited } = await serve({ TLS_CERT_PATH: cert, TLS_KEY_PATH: key })
    expect([httpUrl, wsUrl]).toEqual([expect.stringMatching(/^https:/), expect.stringMatching(/^wss:/)])
    const client = await openSocket(wsUrl, { ca: await readFile(cert), origin: httpUrl })
    expect(await client.ask({ ...slow(0) })).toMatchObject({ success: true })
    const curl = introduction.find((line) => line.trim().startsWith('curl'))
    expect(JSON.parse((await promisify(execFile)('sh', ['-c', curl!])).stdout)).toMatchObject({ wsEndpoint: wsUrl })
    const followed = await paste(clientLine({ introduction }), process.cwd())
    expect(followed.at(-1)!.trim()).toBe('task_complete completed')
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  it.each([
    [{ PORT: 'many' }, 'agent-tasks: Setting PORT: got "many", expected an integer from 0 to 65535.'],
    [
      { HOST: '0.0.0.0' },
      'agent-tasks: Setting HOST: got "0.0.0.0", expected a loopback address, or AUTH_TOKENS with at least one token.',
    ],
    [
      { CONFIG_FILE: '/nowhere.json' },
      'agent-tasks: Setting CONFIG_FILE: got "/nowhere.json", expected the path of a readable JSON file.',
    ],
  ])('stops at %j, says why, and exits with 2', async (env, message) => {
    const child = spawnServer(env)
    const exited = once(child, 'exit') as Promise<[number]>
    const [said, [code]] = await Promise.all([text(child.stderr!), exited])
    expect([said.trim(), code]).toEqual([message, 2])
  })
})
