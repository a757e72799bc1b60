// config check and doctor.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hashOf, sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore } from '../../../src/store/sessions/session-store.js'
import { checkNode, checkPackage } from '../../../src/cli/health-checks.js'
import { needsSqlitePackage } from '../../../src/store/sqlite/driver.js'
import { containing, jsonLines, matching, run, startCommandLine } from './command-line.js'

async function configFile(content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'agent-tasks.config.json')
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const subagent = (name: string, command: string) => ({ name, description: 'It does what it is told.', command })

describe('config check', () => {
  it('prints the subagents, the instances, and the addresses of the server', async () => {
    const file = await configFile({ subagents: [subagent('a', 'node')], instances: [{ id: 'x', command: 'node' }] })
    expect(await run(['config', 'check', file], { env: { PORT: '4000' } })).toEqual({
      exitCode: 0,
      stdout: `${file} is valid.\nSubagents: a. Instances: x.\nThe task server would listen on 127.0.0.1, ports 4000 and 3400.\n`,
      stderr: '',
    })
    const { stdout } = await run(['config', 'check', file, '--json'])
    expect(jsonLines(stdout)).toEqual([
      { file, subagents: ['a'], instances: ['x'], server: { host: '127.0.0.1', port: 3300, wsPort: 3400 } },
    ])
  })

  it('warns of placeholders that are not replaced', async () => {
    const args = ['{prompt}', '--goal={gaol}', '{goal}', '{ a }', '-e{x}', '--id={id}']
    const file = await configFile({ subagents: [{ ...subagent('a', 'node'), args }] })
    const expected = (at: number, argument: string) =>
      `Warning: subagents[0].args[${at}]: "${argument}" is passed on unchanged. The placeholders are {goal}, {goal:file}, {results}, {name} and {id}.`
    const { stdout } = await run(['config', 'check', file])
    expect(stdout.split('\n').filter((line) => line.startsWith('Warning'))).toEqual([
      expected(0, '{prompt}'),
      expected(1, '--goal={gaol}'),
    ])
  })

  it('names the file and the invalid field', async () => {
    const file = await configFile({ subagents: [{ ...subagent('a', 'node'), args: 'x' }] })
    expect(await run(['config', 'check', file])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: containing('subagents[0].args: got "x", expected an array'),
    })
    expect((await run(['config', 'check', file])).stderr).toContain(file)
    expect(await run(['config', 'check', await configFile('{')])).toMatchObject({
      exitCode: 2,
      stderr: containing('not JSON'),
    })
    expect(await run(['config', 'check', join(file, 'none')])).toMatchObject({ exitCode: 2 })
  })

  it('says how to check the settings of the task server, which are another file', async () => {
    const file = await configFile({ tasks: { drainMs: 1 } })
    const hint = `to check those: CONFIG_FILE=${JSON.stringify(file)} agent-tasks config check.`
    expect(await run(['config', 'check', file])).toMatchObject({ exitCode: 2, stderr: containing(hint) })
    expect((await run(['config', 'check', await configFile({ subagent: [] })])).stderr).not.toContain('CONFIG_FILE')
    expect(await run(['config', 'check'], { env: { CONFIG_FILE: file } })).toMatchObject({ exitCode: 0 })
  })

  it('names the invalid variable', async () => {
    const file = await configFile({})
    expect(await run(['config', 'check', file], { env: { TASKS_WS_PORT: '-1' } })).toMatchObject({
      exitCode: 2,
      stderr: 'agent-tasks: Setting TASKS_WS_PORT: got -1, expected an integer from 0 to 65535.\n',
    })
    expect(await run(['config', 'check', file], { env: { CONFIG_FILE: '/nowhere' } })).toMatchObject({ exitCode: 2 })
  })
})

describe('config check of commands', () => {
  it.each([
    [{ allow: ['npm', 'git'] }, 'Commands: npm, git.'],
    [{ allow: [] }, 'Commands: none.'],
    [{ shell: true }, 'Commands: any, with /bin/sh.'],
  ])('F1: prints what %j can start', async (commands, line) => {
    const file = await configFile({ commands })
    expect((await run(['config', 'check', file])).stdout).toContain(`${line}\n`)
    const [json] = jsonLines((await run(['config', 'check', '--json', file])).stdout) as [object]
    expect(json).toMatchObject({ commands })
  })
})

describe('doctor', () => {
  const freePorts = { PORT: '0', TASKS_WS_PORT: '0', PATH: process.env['PATH'] ?? '' }
  const findings = async (config: unknown, env: Record<string, string> = freePorts, args: readonly string[] = []) => {
    const { exitCode, stdout } = await run(['doctor', '--json', '--config', await configFile(config), ...args], { env })
    const lines = jsonLines(stdout) as { check: string; state: string; detail: string }[]
    return { exitCode, of: (check: string) => lines.find((line) => line.check === check) }
  }

  it('reports programs that are there as ok', async () => {
    const { exitCode, of } = await findings({ subagents: [subagent('a', process.execPath), subagent('b', 'sh')] })
    expect(exitCode).toBe(0)
    expect(of('Node')).toMatchObject({ state: 'ok', detail: process.versions.node })
    expect(of('fast-check')).toMatchObject({ state: 'ok', detail: containing('for agent-tasks/testing') })
    expect(of('subagent a')).toMatchObject({ state: 'ok', detail: process.execPath })
    expect(of('subagent b')).toMatchObject({ state: 'ok', detail: matching(/^sh is \/.*sh$/) })
    expect(of('port 0')).toMatchObject({ state: 'ok' })
    expect(of('port 3320')).toMatchObject({ state: matching(/^(ok|note)$/) })
    // Node 20 has no SQLite of its own.
    const sqlite = of('@photostructure/sqlite')
    if (needsSqlitePackage()) expect(sqlite?.detail).toContain(`as Node ${process.versions.node} has no safe SQLite`)
    else expect(sqlite).toBeUndefined()
  })

  it('F1: looks up the programs that commands may start', async () => {
    const { exitCode, of } = await findings({ commands: { allow: ['sh', 'no-such-program'] } })
    expect(exitCode).toBe(6)
    expect(of('command sh')).toMatchObject({ state: 'ok', detail: matching(/^sh is \/.*sh$/) })
    expect(of('command no-such-program')).toMatchObject({ state: 'missing' })
    expect((await findings({ commands: { shell: true } })).of('command /bin/sh')).toMatchObject({ state: 'ok' })
  })

  it('looks at the store of the configuration, and creates nothing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const store = join(folder, 'store')
    const config = { store, session: 'the key' }
    expect((await findings({})).of('store')).toBeUndefined()
    expect((await findings(config)).of('store')).toMatchObject({
      state: 'ok',
      detail: `${store}: 0 file(s) of session "the key"`,
    })
    expect(existsSync(store)).toBe(false)
    const used = sessionStore(sessionFolder(store, 'the key'), () => true)
    used.open()
    onTestFinished(() => used.close())
    expect((await findings(config)).of('store')?.detail).toContain(
      `1 file(s) of session "the key", in use by ${process.pid}`,
    )
    await writeFile(join(store, `${hashOf('the key')}-2.db`), 'nothing')
    const damaged = await findings(config)
    expect(damaged.exitCode).toBe(6)
    expect(damaged.of('store')).toMatchObject({ state: 'missing', detail: containing('-2.db: it is not an SQLite') })
    const other = await findings({ ...config, session: 'other' })
    expect(other.of('store')).toMatchObject({ state: 'ok' })
    await writeFile(join(folder, 'file'), '')
    expect((await findings({ store: join(folder, 'file') })).of('store')).toMatchObject({
      state: 'missing',
      detail: containing('it is not a folder'),
    })
  })

  it('finds programs that are missing or do not start, and exits with 6', async () => {
    const instances = [
      { id: 'dead', command: process.execPath, args: ['-e', 'console.error("no key"); process.exit(3)'] },
    ]
    const subagents = [subagent('gone', 'no-such-program'), subagent('folder', './'), subagent('odd', './x.txt')]
    const { exitCode, of } = await findings({ subagents, instances }, freePorts, ['--start'])
    expect(exitCode).toBe(6)
    expect(of('subagent gone')).toMatchObject({
      state: 'missing',
      detail: 'there is no executable no-such-program (in PATH): install it, or set its path',
    })
    expect(of('subagent folder')).toMatchObject({ state: 'missing' })
    expect(of('subagent odd')).toMatchObject({ state: 'missing', detail: containing('relative to') })
    expect(of('instance dead')).toMatchObject({ state: 'missing', detail: containing('no key') })
  })

  it('runs nothing that the configuration names, unless it is told to start instances', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const script = join(folder, 'deploy.sh')
    await writeFile(script, `#!/bin/sh\ntouch '${folder}/deployed'\n`)
    await chmod(script, 0o700)
    const config = {
      subagents: [{ ...subagent('deploy', './deploy.sh'), cwd: folder }],
      instances: [{ id: 'deploy', command: 'deploy.sh', env: { PATH: folder } }],
    }
    const { exitCode, of } = await findings(config)
    expect([exitCode, of('subagent deploy')?.detail, of('instance deploy')?.detail]).toEqual([
      0,
      `./deploy.sh is ${script}`,
      `deploy.sh is ${script}`,
    ])
    expect(existsSync(join(folder, 'deployed'))).toBe(false)
  })

  it('starts an instance with --start and counts its tools', async () => {
    const args = ['node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio']
    const config = { instances: [{ id: 'e', command: process.execPath, args, cwd: process.cwd() }] }
    const { of } = await findings(config, freePorts, ['--start'])
    expect(of('instance e')).toMatchObject({
      state: 'ok',
      detail: expect.stringMatching(/^starts, and has \d+ tools$/) as string,
    })
  })

  it('distinguishes a task server from another program on a port', async () => {
    const { server } = await startCommandLine()
    const sockets: Socket[] = []
    const other = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
    await once(other, 'listening')
    onTestFinished(() => {
      other.close()
      for (const socket of sockets) socket.destroy()
    })
    const { port } = other.address() as { port: number }
    const ours = new URL(server.httpUrl).port
    const { exitCode, of } = await findings({}, { PORT: ours, TASKS_WS_PORT: String(port) })
    expect(exitCode).toBe(0)
    expect(of(`port ${ours}`)).toMatchObject({ state: 'ok', detail: containing('a task server') })
    expect(of(`port ${port}`)).toMatchObject({ state: 'note', detail: containing('in use') })
  })

  it('knows both ports of a task server', async () => {
    const { server } = await startCommandLine()
    const [http, socket] = [server.httpUrl, server.wsUrl].map((url) => new URL(url).port)
    const { of } = await findings({}, { PORT: http!, TASKS_WS_PORT: socket! })
    expect(of(`port ${http!}`)).toMatchObject({ state: 'ok', detail: containing('used by a task server ') })
    expect(of(`port ${socket!}`)).toMatchObject({ state: 'ok', detail: 'used by the client socket of a task server' })
  })

  it('reports an address that this machine does not have', async () => {
    const { exitCode, of } = await findings({}, { ...freePorts, HOST: '203.0.113.1', AUTH_TOKENS: 'token' })
    expect(exitCode).toBe(6)
    expect(of('port 0')).toEqual({
      check: 'port 0',
      state: 'missing',
      detail: 'cannot listen on 203.0.113.1 (EADDRNOTAVAIL)',
    })
  })

  it('notes a package that is not installed', () => {
    expect(checkPackage('no-such-package', 'nothing here', '/')).toEqual({
      check: 'no-such-package',
      state: 'note',
      detail: 'not installed; needed only for nothing here',
    })
  })

  it('goes on when the configuration or a setting is invalid', async () => {
    const { exitCode, of } = await findings('{', { PORT: 'many' })
    expect(exitCode).toBe(6)
    expect(of('configuration')).toMatchObject({ state: 'missing', detail: containing('not JSON') })
    expect(of('server settings')).toMatchObject({ state: 'missing', detail: containing('PORT') })
  })

  it('prints a line for each finding', async () => {
    const { stdout } = await run(['doctor', '--config', await configFile({})], { env: freePorts })
    expect(stdout.split('\n')[0]).toBe(`ok       Node: ${process.versions.node}`)
  })

  it.each([
    ['20.19.0', 'ok'],
    ['22.0.0', 'ok'],
    ['20.18.9', 'missing'],
    ['18.20.0', 'missing'],
  ])('checks Node %s: %s', (version, state) => {
    expect(checkNode(version).state).toBe(state)
  })
})

describe('help', () => {
  it.each([[['config', 'check']], [['doctor']], [['mcp']]])('has examples: %j', async (args) => {
    expect((await run([...args, '--help'])).stdout).toContain('Examples:\n  $ ')
  })
})
