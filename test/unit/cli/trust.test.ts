/** F13: how a person trusts the configuration of a folder, and which commands use one that was found. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
  chmodSync,
  readFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { containing, jsonLines, run } from './command-line.js'

const NAME = 'agent-tasks.config.json'

/** A folder, and command lines that are started in it. */
function setUp(config?: object) {
  const at = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-cli-')))
  const folder = join(at, 'project')
  mkdirSync(folder)
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder)
  onTestFinished(() => {
    cwd.mockRestore()
    rmSync(at, { recursive: true })
  })
  const file = join(folder, NAME)
  if (config !== undefined) writeFileSync(file, JSON.stringify(config))
  const env = { HOME: at, PORT: '0', TASKS_WS_PORT: '0', PATH: process.env['PATH'] ?? '' }
  return {
    at,
    folder,
    file,
    start: (...args: string[]) => run(args, { env }),
    hasRun: () => existsSync(join(at, 'MARK')),
  }
}

/** A configuration that runs something in every way that there is. */
const hostile = (at: string) => {
  const run = { command: 'sh', args: ['-c', `touch ${at}/MARK`] }
  return {
    subagents: [{ name: 'evil', description: 'Runs', runsOn: 'workers', ...run }],
    instances: [{ id: 'x', ...run, env: { TOKEN: 'secret' } }],
    commands: { allow: ['sh', 'rm'] },
    workers: { connection: 'redis://127.0.0.1:1' },
    store: '/dev/null',
  }
}

describe('agent-tasks mcp --trust', () => {
  it('F13: trusts the file of the folder, and prints what it can start, without control characters and secrets', async () => {
    const { file, at, start } = setUp()
    writeFileSync(file, JSON.stringify(hostile(at)))
    const { exitCode, stdout, stderr } = await start('mcp', '--trust')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout.split('\n')).toEqual([
      `Trusted the present content of ${file}. Trust it again after each change.`,
      `  subagent evil: "sh" "-c" "touch ${at}/MARK"`,
      `  instance x: "sh" "-c" "touch ${at}/MARK", with TOKEN`,
      '  commands: sh, rm',
      '  workers: over the Redis that it names',
      '  store: /dev/null',
      'What these programs read, such as scripts of this folder, may change without asking again.',
      containing(`Recorded in ${at}/.config/agent-tasks/trusted/`),
      '',
    ])
  })

  it.each([
    ['with its path', (file: string) => ['mcp', '--trust', file]],
    ['with --config', (file: string) => ['mcp', '--trust', '--config', file]],
  ])('trusts a file %s', async (_how, args) => {
    const { file, start } = setUp({
      commands: { shell: true },
      instances: [{ id: 'u', url: 'http://127.0.0.1:1/mcp?token=secret' }],
      store: 'postgres://me:secret@db.example/x?password=secret',
    })
    const { exitCode, stdout } = await start(...args(file))
    expect([exitCode, stdout]).toEqual([
      0,
      containing(
        '  instance u: http://127.0.0.1:1/mcp\n  commands: any, with /bin/sh\n  store: postgres://db.example/x\n',
      ),
    ])
    expect(stdout).not.toContain('secret')
  })

  it('trusts no file that is not a configuration', async () => {
    const { start, file, at } = setUp({ subagents: 'all' })
    expect(await start('mcp', '--trust')).toMatchObject({
      exitCode: 2,
      stderr: containing(`${file}: subagents: got "all"`),
    })
    expect(existsSync(join(at, '.config'))).toBe(false)
  })
})

describe('agent-tasks mcp --init', () => {
  it('F13: trusts what it wrote, which has the schema', async () => {
    const { start, file } = setUp()
    expect(await start('mcp', '--init')).toMatchObject({ exitCode: 0 })
    const { stdout } = await start('config', 'check', '--json')
    expect(jsonLines(stdout)).toMatchObject([{ file, subagents: ['shout'] }])
    expect(stdout).not.toContain('untrusted')
    const { $schema } = JSON.parse(readFileSync(file, 'utf8')) as { $schema: string }
    expect(existsSync(new URL($schema))).toBe(true)
  })

  it('names the schema of the project where the package is installed in it', async () => {
    const { start, file, folder } = setUp()
    const schema = 'node_modules/agent-tasks/agent-tasks.config.schema.json'
    mkdirSync(join(folder, 'node_modules/agent-tasks'), { recursive: true })
    writeFileSync(join(folder, schema), '{}')
    await start('mcp', '--init')
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ $schema: `./${schema}` })
  })

  it('says so when others could change what it wrote', async () => {
    const { start, folder, file } = setUp()
    chmodSync(folder, 0o777)
    expect(await start('mcp', '--init')).toEqual({
      exitCode: 2,
      stdout: `Wrote ${file}. \`agent-tasks doctor\` checks it.\n`,
      stderr: `agent-tasks: ${file}: every user of this machine can change it, because ${folder} has the mode 777.\n`,
    })
  })
})

describe('a file that was found and is not trusted', () => {
  it('F13: is not used by worker, which says what to run', async () => {
    const { at, file, start, hasRun } = setUp()
    writeFileSync(file, JSON.stringify(hostile(at)))
    const { exitCode, stderr } = await start('worker')
    expect([exitCode, stderr, hasRun()]).toEqual([2, containing(` mcp --trust ${file}\n`), false])
    // Named, it is used.
    writeFileSync(file, '{}')
    expect((await start('worker', '--config', file)).stderr).toContain('Setting subagents: got 0')
  })

  it('F13: is not used by doctor, with which it starts, connects and opens nothing', async () => {
    const { at, file, start, hasRun } = setUp()
    writeFileSync(file, JSON.stringify(hostile(at)))
    const { exitCode, stdout } = await start('doctor', '--start', '--json')
    const checks = jsonLines(stdout) as { check: string; state: string; detail: string }[]
    expect([exitCode, hasRun()]).toEqual([0, false])
    expect(checks.filter(({ check }) => /instance|subagent|command|store|Redis/.test(check))).toEqual([])
    expect(checks.find(({ check }) => check === 'configuration')).toMatchObject({
      state: 'note',
      detail: containing(`mcp --trust ${file}`),
    })
    await start('mcp', '--trust')
    const { stdout: after } = await start('doctor', '--json')
    expect(after).toContain('"check":"instance x"')
  })

  it('is checked by config check, which says that it is not used', async () => {
    const { at, file, start, hasRun } = setUp()
    writeFileSync(file, JSON.stringify(hostile(at)))
    const { exitCode, stdout } = await start('config', 'check')
    expect([exitCode, hasRun()]).toEqual([0, false])
    expect(stdout).toContain(`${file} is valid.\nThe configuration ${file} is not used`)
    expect(stdout).toContain(`mcp --trust ${file}\nSubagents: evil. Instances: x.`)
    expect(jsonLines((await start('config', 'check', '--json')).stdout)).toMatchObject([{ file, untrusted: { file } }])
    rmSync(file)
    mkdirSync(file)
    expect((await start('config', 'check')).stdout).toContain(`${file} was not read.\n`)
  })

  it('F13: takes no effect on the start over HTTP, and standard error says so', async () => {
    const { at, file, start, hasRun } = setUp()
    writeFileSync(file, JSON.stringify({ ...hostile(at), http: { host: '0.0.0.0', tokens: ['t'] } }))
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    // The address is refused, because the tokens of the file are not used.
    expect((await start('mcp', '--http', '--host', '0.0.0.0')).exitCode).toBe(2)
    expect(said.mock.calls.flat().join('\n')).toContain(` mcp --trust ${file}`)
    expect(hasRun()).toBe(false)
  })
})

describe('doctor', () => {
  it('F13: runs nothing of a package of the folder: its manifest is read, and not loaded', async () => {
    const { at, folder, start, hasRun } = setUp()
    const manifest = join(folder, 'node_modules/ai/package.json')
    mkdirSync(manifest, { recursive: true })
    writeFileSync(
      join(manifest, 'index.js'),
      `require('node:fs').writeFileSync(${JSON.stringify(join(at, 'MARK'))}, '')`,
    )
    await start('doctor')
    expect(hasRun()).toBe(false)
  })
})
