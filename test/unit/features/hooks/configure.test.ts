import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HOOK_SETUPS } from '../../../../src/features/hooks/clients.js'
import {
  checkHooks,
  findServerName,
  planOf,
  printHooks,
  removeHooks,
  writeHooks,
} from '../../../../src/features/hooks/configure.js'
import { CLIENT_NAMES, type ClientName } from '../../../../src/features/hooks/hook-client.js'
import { changeFile } from '../../../../src/features/hooks/settings-file.js'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hooks-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const plan = (client: ClientName, scope: 'user' | 'project' = 'user') =>
  planOf({
    client,
    scope,
    folder: join(home, 'project'),
    env: { HOME: home },
    command: ['/usr/bin/node', '/a b/main.js'],
  })

const fileOf = (client: ClientName): string => printHooks(plan(client)).file

function give(client: ClientName, text: string, mode = 0o644): string {
  const file = fileOf(client)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

describe.each(CLIENT_NAMES)('the hooks of %s', (client) => {
  it('are written, found, written again without a change, and removed', () => {
    expect(checkHooks(plan(client))).toEqual([`${fileOf(client)} does not exist.`])
    expect(writeHooks(plan(client))).toEqual({ file: fileOf(client), hasChanged: true })
    expect(checkHooks(plan(client))).toEqual([])
    expect(writeHooks(plan(client)).hasChanged).toBe(false)
    expect(statSync(fileOf(client)).mode & 0o777).toBe(0o600)
    expect(removeHooks(plan(client)).hasChanged).toBe(true)
    expect(checkHooks(plan(client))).not.toEqual([])
    expect(removeHooks(plan(client)).hasChanged).toBe(false)
    expect(readdirSync(dirname(fileOf(client))).filter((name) => name.includes('agent-tasks-'))).toEqual([])
  })

  it('replace those of another version', () => {
    writeHooks(planOf({ ...plan(client), command: ['/usr/bin/node', '/old/main.js'], server: 'old' }))
    if (client === 'codex' || client === 'claude' || client === 'opencode') {
      expect(checkHooks(plan(client))).not.toEqual([])
    }
    expect(writeHooks(plan(client)).hasChanged).toBe(true)
    expect(checkHooks(plan(client))).toEqual([])
    expect(readFileSync(fileOf(client), 'utf8')).not.toContain('/old/main.js')
  })

  it('are not written to a file that people commit', () => {
    if (!HOOK_SETUPS[client].isCommitted) return
    expect(() => writeHooks(plan(client, 'project'))).toThrow('--scope: got "project", expected user, because')
    expect(() => removeHooks(plan(client, 'project'))).toThrow('--scope')
    expect(existsSync(join(home, 'project'))).toBe(false)
  })

  it('need HOME', () => {
    expect(() => printHooks({ ...plan(client), env: {} })).toThrow('HOME: got undefined, expected a folder')
  })
})

const SHARED = ['claude', 'codex', 'gemini', 'qwen'] as const

describe.each(SHARED)('settings of %s with entries of others', (client) => {
  const settings = `{
  // my model
  "model": "m",
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "mine" }] } // keep
    ],
    "Other": []
  }
}
`

  it('keep them, with comments, mode and link', () => {
    const target = join(home, 'target.json')
    const file = fileOf(client)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(target, settings)
    chmodSync(target, 0o640)
    symlinkSync(target, file)
    writeHooks(plan(client))
    const written = readFileSync(file, 'utf8')
    for (const kept of ['// my model', '// keep', '"command": "mine"', '"Other": []']) expect(written).toContain(kept)
    expect(lstatSync(file).isSymbolicLink()).toBe(true)
    expect(statSync(target).mode & 0o777).toBe(0o640)
    removeHooks(plan(client))
    const removed = readFileSync(file, 'utf8')
    for (const kept of ['// my model', '"command": "mine"', '"Other": []']) expect(removed).toContain(kept)
    expect(removed).not.toContain('agent_tasks')
    expect(removed).not.toContain('--client')
  })

  it('that are no JSON are refused, and left as they are', () => {
    const file = give(client, '{\n  "model": }')
    for (const change of [writeHooks, removeHooks, checkHooks]) {
      expect(() => change(plan(client))).toThrow(`${file}: line 2: expected a JSON object. Nothing was written.`)
    }
    expect(readFileSync(file, 'utf8')).toBe('{\n  "model": }')
  })

  it('with something else in place of a list are refused', () => {
    const { path } = (HOOK_SETUPS[client] as Extract<(typeof HOOK_SETUPS)['claude'], { entries: unknown }>).entries(
      plan(client).target,
    )[0] ?? { path: [] }
    const text = JSON.stringify({ hooks: { [path.at(-1) ?? '']: 'mine' } })
    const file = give(client, text)
    expect(() => writeHooks(plan(client))).toThrow('is not a list. Nothing was written.')
    expect(readFileSync(file, 'utf8')).toBe(text)
  })
})

it.each(['copilot', 'opencode'] as const)(
  'a file of another author in the place of that of %s is left alone',
  (client) => {
    const file = give(client, 'mine')
    expect(() => writeHooks(plan(client))).toThrow(`${file} is not from agent-tasks. Nothing was changed.`)
    expect(() => removeHooks(plan(client))).toThrow('Nothing was changed.')
    expect(readFileSync(file, 'utf8')).toBe('mine')
  },
)

it('a file that is changed at the same time is not replaced', () => {
  const file = give('claude', '{}')
  const change = () =>
    changeFile(file, () => {
      writeFileSync(file, '{"theirs":1}')
      return '{"ours":1}'
    })
  expect(change).toThrow('was changed at the same time')
  expect(readFileSync(file, 'utf8')).toBe('{"theirs":1}')
})

describe('in the place of the settings', () => {
  const refused = (problem: string) => {
    for (const change of [writeHooks, removeHooks, checkHooks]) expect(() => change(plan('claude'))).toThrow(problem)
  }

  it('a FIFO, a folder, a link to a device, and a link without a target are refused', () => {
    const file = fileOf('claude')
    mkdirSync(file, { recursive: true })
    refused('is not a regular file')
    rmSync(file, { recursive: true })
    expect(spawnSync('mkfifo', [file]).status).toBe(0)
    refused('is not a regular file')
    rmSync(file)
    symlinkSync('/dev/zero', file)
    refused('is not a regular file')
    rmSync(file)
    symlinkSync(join(home, 'missing'), file)
    refused('is a link without a target. Nothing was written.')
    expect(lstatSync(file).isSymbolicLink()).toBe(true)
  })

  it('a huge file, and JSON that is nested too deep, are refused', () => {
    const file = give('claude', '{}')
    truncateSync(file, 17 * 1024 * 1024)
    refused('bytes, expected at most 16777216')
    writeFileSync(file, `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)
    refused('the JSON is nested too deep')
  })

  it('hooks that are no object, or that are there twice, are refused, so that no entry of others is removed', () => {
    const entry = (command: string) => ({ Stop: [{ hooks: [{ command }] }] })
    const [theirs, ours] = [JSON.stringify(entry('mine')), JSON.stringify(entry('x hook stop --client claude'))]
    for (const text of [`{"hooks":${theirs},"hooks":${ours}}`, `{"hooks":{"Stop":[1],${ours.slice(1)}}`]) {
      const file = give('claude', text)
      refused('hooks has a name twice')
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
    for (const text of ['{"hooks":"x"}', '{"hooks":[]}', '{"hooks":null}']) {
      give('claude', text)
      refused('hooks is not an object')
    }
  })

  it('what is under __proto__, and the command of another program, stays', () => {
    const text = `{"__proto__":{"hooks":{"Stop":[{"hooks":[{"command":"x hook stop --client claude"}]}]}},"hooks":{"Stop":[{"hooks":[{"command":"theirs hook stop --client web"}]}]}}`
    const file = give('claude', text)
    expect(removeHooks(plan('claude')).hasChanged).toBe(false)
    writeHooks(plan('claude'))
    expect(checkHooks(plan('claude'))).toEqual([])
    expect(readFileSync(file, 'utf8')).toContain('theirs hook stop --client web')
  })

  it.skipIf(process.getuid?.() === 0)('a read-only file is left alone', () => {
    const file = give('claude', '{}', 0o444)
    expect(() => writeHooks(plan('claude'))).toThrow('is read-only')
    expect(readFileSync(file, 'utf8')).toBe('{}')
  })

  it('a link of a project to a file outside of it is refused', () => {
    const outside = join(home, 'outside')
    mkdirSync(outside)
    const target = join(outside, 'settings.local.json')
    const folder = join(home, 'project', '.claude')
    mkdirSync(folder, { recursive: true })
    writeFileSync(target, '{}')
    symlinkSync(target, join(folder, 'settings.local.json'))
    expect(() => writeHooks(plan('claude', 'project'))).toThrow('is a link out of the folder')
    rmSync(folder, { recursive: true })
    rmSync(target)
    symlinkSync(outside, folder)
    expect(() => writeHooks(plan('claude', 'project'))).toThrow('is a link out of the folder')
    expect(readdirSync(outside)).toEqual([])
    rmSync(folder)
    expect(writeHooks(plan('claude', 'project')).hasChanged).toBe(true)
  })
})

it('commands are quoted for a shell, and never run npx', () => {
  const { text } = printHooks(plan('gemini'))
  expect(text).toContain(`/usr/bin/node '/a b/main.js' hook stop --client gemini`)
  for (const client of CLIENT_NAMES) expect(printHooks(plan(client)).text).not.toContain('npx')
})

describe('the name of the server', () => {
  const place = { scope: 'user' as const, folder: '/project', env: {} as Record<string, string> }
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(home, file)), { recursive: true })
    writeFileSync(join(home, file), text)
  }

  it.each([
    ['claude', '.claude.json', { mcpServers: { tasks: { command: 'npx', args: ['agent-tasks', 'mcp'] } } }],
    [
      'claude',
      '.claude.json',
      { projects: { '/project': { mcpServers: { tasks: { command: 'agent-tasks', args: ['mcp'] } } } } },
    ],
    [
      'gemini',
      '.gemini/settings.json',
      { mcpServers: { other: {}, tasks: { args: ['/x/agent-tasks/main.js', 'mcp'] } } },
    ],
    ['opencode', '.config/opencode/opencode.json', { mcp: { tasks: { command: ['agent-tasks', 'mcp'] } } }],
    ['copilot', '.copilot/mcp-config.json', { mcpServers: { tasks: { command: 'agent-tasks', args: ['mcp'] } } }],
  ] as const)('of %s is in %s', (client, file, json) => {
    write(file, JSON.stringify(json))
    expect(findServerName(client, { ...place, env: { HOME: home } })).toBe('tasks')
  })

  it('of codex is in config.toml', () => {
    write(
      '.codex/config.toml',
      '[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers."my tasks"]\nargs = ["agent-tasks", "mcp"]\n',
    )
    expect(findServerName('codex', { ...place, env: { HOME: home } })).toBe('my tasks')
  })

  it('is agent-tasks if there is none', () => {
    write('.claude.json', '{')
    expect(plan('claude').target.server).toBe('agent-tasks')
  })
})

it('codex is woken while it is idle only if the user has chosen that', () => {
  const woken = planOf({ ...plan('codex'), command: ['/usr/bin/node', '/a b/main.js'], wakesIdle: true })
  expect(printHooks(plan('codex')).text).not.toContain('wakes_idle')
  expect(printHooks(woken).text).toContain('"wakes_idle": true')
  for (const chosen of [woken, plan('codex')]) {
    writeHooks(chosen)
    expect(checkHooks(plan('codex'))).toEqual([])
    expect(checkHooks(woken)).toEqual([])
  }
  expect(readFileSync(fileOf('codex'), 'utf8')).not.toContain('wakes_idle')
})
