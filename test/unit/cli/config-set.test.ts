/** F13: `config set`, and comments in the configuration of each command that reads one. */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { containing, run } from './command-line.js'

const commented = `// What the tools start.
{
    /* one at a time */ "maxAsyncTasks": 1, // for now
    "subagents": [
        { "name": "a", "description": "d", "command": "node" }, // the only one
    ],
}
`

function setUp(text = commented, name = 'agent-tasks.config.json') {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-cli-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder)
  onTestFinished(() => {
    cwd.mockRestore()
  })
  const env = { HOME: folder, PORT: '0', TASKS_WS_PORT: '0', PATH: process.env['PATH'] ?? '' }
  return { folder, file, read: () => readFileSync(file, 'utf8'), start: (...args: string[]) => run(args, { env }) }
}

describe('a configuration with comments', () => {
  it('F13: is read by config check, trusted by mcp --trust, and checked by doctor', async () => {
    const { file, start } = setUp()
    expect(await start('config', 'check', file)).toMatchObject({ exitCode: 0, stdout: containing('Subagents: a.') })
    expect(await start('mcp', '--trust')).toMatchObject({ exitCode: 0, stdout: containing('subagent a: "node"') })
    expect((await start('doctor')).stdout).toContain('subagent a')
  })

  it('F13: is read by the task server, as CONFIG_FILE', async () => {
    const { file } = setUp('\uFEFF{ "port": 4321, /* here */ }', 'server.json')
    expect(await run(['config', 'check'], { env: { CONFIG_FILE: file } })).toMatchObject({
      exitCode: 0,
      stdout: containing('ports 4321 and 3400'),
    })
  })

  it('F13: names the line of a mistake below a comment', async () => {
    const { file, start } = setUp('/* one\n two */\n{ "maxAsyncTasks": 1 "x" }')
    const { exitCode, stderr } = await start('config', 'check', file)
    expect(exitCode).toBe(2)
    // Node 20 names the position alone.
    expect(stderr).toMatch(/is not JSON: .*(line 3|position 36)/)
  })
})

describe('config set', () => {
  it('F13: prints the file with another value, and changes nothing without --write', async () => {
    const { read, start } = setUp()
    const { exitCode, stdout } = await start('config', 'set', 'maxAsyncTasks', '3')
    expect([exitCode, stdout]).toEqual([0, commented.replace('"maxAsyncTasks": 1', '"maxAsyncTasks": 3')])
    expect(read()).toBe(commented)
  })

  it('F13: changes one field with --write; comments, indentation and mode stay, and it has to be trusted again', async () => {
    const { folder, file, read, start } = setUp()
    chmodSync(file, 0o640)
    await start('mcp', '--trust')
    const { exitCode, stdout } = await start('config', 'set', 'subagents[0].timeoutSeconds', '60', '--write')
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`Changed subagents[0].timeoutSeconds in ${file}.\n`)
    expect(stdout).toContain('it has changed since it was trusted')
    expect(stdout).toContain('mcp --trust')
    const line = '{ "name": "a", "description": "d", "command": "node", "timeoutSeconds": 60 }, // the only one'
    expect(read().replace(/\s+/g, ' ')).toBe(
      commented
        .replace('{ "name": "a", "description": "d", "command": "node" }, // the only one', line)
        .replace(/\s+/g, ' '),
    )
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(readdirSync(folder).filter((name) => name.startsWith('agent-tasks'))).toEqual(['agent-tasks.config.json'])
  })

  it('F13: adds an item, and takes a text without quotes', async () => {
    const { read, start } = setUp('{\n  "subagents": [],\n  // where\n  "store": "a"\n}\n')
    const item = JSON.stringify({ name: 'b', description: 'd', command: 'node' })
    expect(await start('config', 'set', 'subagents[0]', item, '--write')).toMatchObject({ exitCode: 0 })
    expect(await start('config', 'set', 'subagents[0].command', 'sh', '--write')).toMatchObject({ exitCode: 0 })
    expect(read()).toContain('"command": "sh"')
    expect(read()).toContain('// where')
  })

  it('F13: follows a link, which stays', async () => {
    const { folder, file, read, start } = setUp(commented, 'real.json')
    const link = join(folder, 'link.json')
    symlinkSync(file, link)
    expect(await start('config', 'set', 'queueMax', '7', '--write', '--config', link)).toMatchObject({ exitCode: 0 })
    expect(read()).toContain('"queueMax": 7')
    expect(realpathSync(link)).toBe(file)
  })

  it.each([
    [['maxAsyncTasks', 'many'], 'maxAsyncTasks: got "many", expected'],
    [['maxAsyncTask', '3'], 'did you mean maxAsyncTasks?'],
    [['subagents[5]', '{}'], 'field: got "subagents[5]", expected an index of at most 1'],
    [['maxAsyncTasks[0]', '1'], 'expected a list before the index'],
    [['subagents..x', '1'], 'expected names with dots between them'],
    [['queueMax', '1', '--config', 'none.json'], 'there is no such file'],
  ])('F13: refuses %j, and leaves the file unchanged', async (args, message) => {
    const { read, start } = setUp()
    expect(await start('config', 'set', ...args, '--write')).toMatchObject({ exitCode: 2, stderr: containing(message) })
    expect(read()).toBe(commented)
  })
})
