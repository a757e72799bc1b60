/** F13: a configuration that was found is used once the user trusts it, with the content that was trusted, and not otherwise. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { loadAgentConfig } from '../../../src/mcp/config-file.js'
import { MAX_FOUND_BYTES } from '../../../src/mcp/found-file.js'
import { trustFolders } from '../../../src/mcp/trust-records.js'
import { describeUntrusted, trustFile } from '../../../src/mcp/trust.js'

const NAME = 'agent-tasks.config.json'

function setUp(content: unknown = { maxAsyncTasks: 7 }) {
  const at = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-trust-')))
  onTestFinished(() => rmSync(at, { recursive: true, force: true }))
  const [home, project] = [join(at, 'home'), join(at, 'project')]
  for (const folder of [home, project]) mkdirSync(folder)
  const env: Record<string, string | undefined> = { HOME: home }
  const file = join(project, NAME)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  const load = (cwd = project, from = env) => loadAgentConfig(undefined, cwd, from)
  return {
    at,
    home,
    project,
    env,
    file,
    load,
    trust: (path = file, to = env) => trustFile(path, to, () => undefined),
    isUsed: (cwd = project, from = env) => load(cwd, from).config.maxAsyncTasks === 7,
    why: () => load().untrusted?.reason,
  }
}

describe('a configuration that was found', () => {
  it('F13: is used from the time on when it is trusted, until it changes', () => {
    const { file, trust, isUsed, load, why } = setUp()
    expect([isUsed(), load().file, load().untrusted?.file]).toEqual([false, undefined, file])
    expect(why()).toContain('nobody has trusted it yet')
    trust()
    expect([isUsed(), load().file, load().untrusted]).toEqual([true, file, undefined])
    writeFileSync(file, `${readFileSync(file, 'utf8')} `)
    expect([isUsed(), why()]).toEqual([false, 'it has changed since it was trusted.'])
    trust()
    expect(isUsed()).toBe(true)
  })

  it('is not parsed before: nothing in it stops the start', () => {
    const { why } = setUp('{ "maxAsyncTasks": "many"')
    expect(why()).toContain('nobody has trusted it yet')
  })

  it('is trusted in its folder alone', () => {
    const { project, at, trust, isUsed } = setUp()
    trust()
    const [copy, upper] = [join(at, 'copy'), join(at, 'PROJECT')]
    for (const folder of [copy, upper]) {
      mkdirSync(folder)
      writeFileSync(join(folder, NAME), readFileSync(join(project, NAME)))
    }
    expect([isUsed(), isUsed(copy), isUsed(upper)]).toEqual([true, false, false])
  })

  it('is the same one through a link to its folder, and another one when it is a link to another content', () => {
    const { at, file, project, trust, isUsed } = setUp()
    symlinkSync(project, join(at, 'link'))
    trust(join(at, 'link', NAME))
    expect([isUsed(), isUsed(join(at, 'link'))]).toEqual([true, true])
    const [own, other] = [join(at, 'own.json'), join(at, 'other.json')]
    writeFileSync(own, readFileSync(file))
    writeFileSync(other, '{"maxAsyncTasks":7,"commands":{"shell":true}}')
    rmSync(file)
    symlinkSync(own, file)
    expect(isUsed()).toBe(true)
    rmSync(file)
    symlinkSync(other, file)
    expect(isUsed()).toBe(false)
  })

  it('F13: is trusted with the bytes that were checked, though it changes at that moment', () => {
    const { file, env, isUsed } = setUp()
    trustFile(file, env, () => writeFileSync(file, '{"maxAsyncTasks":7,"commands":{"shell":true}}'))
    expect(isUsed()).toBe(false)
  })

  it.each<[string, (file: string) => void, string]>([
    ['a named pipe', (file) => void execFileSync('mkfifo', [file]), 'not a regular file'],
    ['a folder', (file) => mkdirSync(file), 'not a regular file'],
    ['a device without an end', (file) => symlinkSync('/dev/zero', file), 'not a regular file'],
    ['a link to itself', (file) => symlinkSync(file, file), 'cannot be read (ELOOP)'],
    [
      'a huge file',
      (file) => {
        writeFileSync(file, '')
        truncateSync(file, 2 ** 40)
      },
      `more than ${MAX_FOUND_BYTES} bytes`,
    ],
  ])('F13: is not used, and stops nothing, when it is %s', (_what, make, problem) => {
    const { file, why, trust, load } = setUp()
    rmSync(file)
    make(file)
    expect(why()).toContain(problem)
    expect(load().untrusted?.command).toBeUndefined()
    expect(() => trust()).toThrow(problem)
  })

  it.each<[string, (paths: { file: string; project: string; at: string }) => string]>([
    ['it', ({ file }) => file],
    ['its folder', ({ project }) => project],
    ['a folder above', ({ at }) => at],
  ])('F13: is not used while every user can change %s', (_what, pick) => {
    const { trust, isUsed, why, ...paths } = setUp()
    trust()
    const path = pick(paths)
    chmodSync(path, 0o777)
    expect([isUsed(), why()]).toEqual([false, expect.stringContaining('every user of this machine can change it')])
    expect(() => trust()).toThrow('has the mode 777')
    chmodSync(path, 0o755)
    expect(isUsed()).toBe(true)
  })

  it('F13: is not used while every user can add files to its folder, and may be below such a folder', () => {
    const { at, project, trust, isUsed, why } = setUp()
    chmodSync(at, 0o1777)
    trust()
    expect(isUsed()).toBe(true)
    chmodSync(project, 0o1777)
    expect([isUsed(), why()]).toEqual([false, expect.stringContaining('has the mode 1777')])
  })

  it('is found with its name alone, and without one there is nothing to trust', () => {
    const { at, file, trust, load } = setUp()
    writeFileSync(join(at, 'other.json'), '{}')
    expect(() => trust(join(at, 'other.json'))).toThrow(
      'only a file with the name agent-tasks.config.json needs to be trusted',
    )
    rmSync(file)
    expect(load()).toMatchObject({ file: undefined, path: file })
    expect(load().untrusted).toBeUndefined()
    expect(() => trust()).toThrow('there is no such file')
  })

  it('with fields that other objects inherit is refused by its schema, and changes no object', () => {
    const { file, trust, load } = setUp('{"__proto__":{"commands":{"shell":true}},"constructor":1}')
    trust()
    expect(() => load()).toThrow(file)
    expect(({} as { commands?: unknown }).commands).toBeUndefined()
  })
})

describe('the record of a trust', () => {
  const recordsOf = (folder: string) => readdirSync(folder).map((name) => join(folder, name))

  it('is readable for the user alone, and replaced as a whole', () => {
    const { home, trust } = setUp()
    const folder = join(home, '.config/agent-tasks/trusted')
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o755)
    trust()
    const [record] = trust()
    expect(recordsOf(folder)).toEqual([record])
    expect([statSync(folder).mode & 0o777, statSync(record!).mode & 0o777]).toEqual([0o700, 0o600])
  })

  it('is in the folder of the XDG specification as well, for servers that get only HOME', () => {
    const { at, home, trust, isUsed, file } = setUp()
    const shell = { HOME: home, XDG_CONFIG_HOME: join(at, 'xdg') }
    expect(trust(file, shell)).toHaveLength(2)
    expect([isUsed(undefined, { HOME: home }), isUsed(undefined, { XDG_CONFIG_HOME: join(at, 'xdg') })]).toEqual([
      true,
      true,
    ])
  })

  it.each(['changed', 'damaged'])('F13: that is %s in one folder does not hide a valid one in the other', (how) => {
    const { at, home, file, trust, load, isUsed } = setUp()
    const server = { HOME: home, XDG_CONFIG_HOME: join(at, 'xdg') }
    const state = () => [isUsed(undefined, server), load(undefined, server).untrusted?.reason]
    for (const [first, second] of [
      [{ HOME: home }, { XDG_CONFIG_HOME: join(at, 'xdg') }],
      [{ XDG_CONFIG_HOME: join(at, 'xdg') }, { HOME: home }],
    ]) {
      rmSync(join(home, '.config'), { recursive: true, force: true })
      rmSync(join(at, 'xdg'), { recursive: true, force: true })
      const [old] = trust(file, first)
      if (how === 'damaged') writeFileSync(old!, '')
      writeFileSync(file, `${readFileSync(file, 'utf8')} `)
      expect(state()).toEqual([
        false,
        how === 'damaged' ? expect.stringContaining(old!) : 'it has changed since it was trusted.',
      ])
      trust(file, second)
      expect(state()).toEqual([true, undefined])
    }
  })

  it('is written to one folder when the other cannot be written', () => {
    const { at, home, trust, isUsed, file } = setUp()
    const server = { HOME: home, XDG_CONFIG_HOME: join(at, 'xdg') }
    writeFileSync(server.XDG_CONFIG_HOME, '')
    expect(trust(file, server)).toEqual([expect.stringContaining(join(home, '.config/agent-tasks/trusted/'))])
    expect(isUsed(undefined, server)).toBe(true)
  })

  it('is never in a folder that the checkout names: relative paths are ignored', () => {
    const { trust, file } = setUp()
    expect(trustFolders({ HOME: '.', XDG_CONFIG_HOME: '.config' })).toEqual([])
    expect(() => trust(file, { HOME: '.' })).toThrow('neither XDG_CONFIG_HOME nor HOME is an absolute path')
  })

  it.each<[string, (record: string) => void, string]>([
    ['half written', (record) => writeFileSync(record, '{"path":'), 'its content is not a valid record'],
    ['empty', (record) => writeFileSync(record, ''), 'its content is not a valid record'],
    ['of a later version', (record) => writeFileSync(record, '{"version":2}'), 'its content is not a valid record'],
    [
      'the record of another path',
      (record) => writeFileSync(record, readFileSync(record, 'utf8').replace('/project/', '/other/')),
      'the record of another path',
    ],
    ['writable for others', (record) => chmodSync(record, 0o602), 'other users can write it (mode 602)'],
    ['writable for its group', (record) => chmodSync(record, 0o620), 'other users can write it (mode 620)'],
    [
      'a named pipe',
      (record) => {
        rmSync(record)
        execFileSync('mkfifo', [record])
      },
      'not a regular file',
    ],
  ])('F13: is not believed when it is %s, and --trust writes it anew', (_what, damage, problem) => {
    const { trust, isUsed, why } = setUp()
    const [record] = trust()
    damage(record!)
    expect([isUsed(), why()]).toEqual([false, expect.stringContaining(problem)])
    trust()
    expect(isUsed()).toBe(true)
  })

  it('F13: is not believed when it belongs to another user', () => {
    const { trust, isUsed, why } = setUp()
    const [record] = trust()
    const own = process.getuid?.() ?? 0
    // Only root can give a file away. For any other user, the process becomes another one.
    if (own === 0) chownSync(record!, 1000, 1000)
    else {
      const getuid = vi.spyOn(process, 'getuid').mockReturnValue(own + 1)
      onTestFinished(() => getuid.mockRestore())
    }
    expect([isUsed(), why()]).toEqual([false, expect.stringContaining('it belongs to another user')])
  })

  it('is written by many processes at once, and whole', async () => {
    const { home, at, env, trust, isUsed } = setUp()
    const folders = Array.from({ length: 20 }, (_, index) => join(at, `p${index}`))
    for (const folder of folders) {
      mkdirSync(folder)
      writeFileSync(join(folder, NAME), '{"maxAsyncTasks":7}')
    }
    const all = folders.flatMap((folder) => [folder, folder, folder])
    await Promise.all(all.map(async (folder) => Promise.resolve(trust(join(folder, NAME), env))))
    expect(folders.every((folder) => isUsed(folder))).toBe(true)
    expect(recordsOf(join(home, '.config/agent-tasks/trusted'))).toHaveLength(20)
  })

  it('that cannot be replaced says why, and leaves no unfinished one', () => {
    const { trust } = setUp()
    const [record] = trust()
    rmSync(record!)
    mkdirSync(join(record!, 'folder'), { recursive: true })
    expect(() => trust()).toThrow('the trust in it cannot be recorded')
    expect(recordsOf(dirname(record!))).toEqual([record])
  })

  it('that cannot be written says why, and leaves nothing', () => {
    const { home, trust } = setUp()
    writeFileSync(join(home, '.config'), '')
    expect(() => trust()).toThrow('the trust in it cannot be recorded')
    expect(existsSync(join(home, '.config/agent-tasks'))).toBe(false)
  })
})

describe('the command that trusts a file', () => {
  /** What a shell makes of the words of a command. */
  const wordsOf = (command: string): string[] =>
    execFileSync('sh', ['-c', `set -- ${command}; printf '%s\\0' "$@"`], { encoding: 'utf8' })
      .split('\0')
      .slice(0, -1)

  it.each(['plain', 'with space', "quote ' and \\", '$(touch owned); `touch owned` & "x" > y'])(
    'F13: names the program and the file by their paths, for a shell: %s',
    (name) => {
      const { at } = setUp()
      const folder = join(at, name.replaceAll('/', '-'))
      mkdirSync(folder)
      writeFileSync(join(folder, NAME), '{}')
      const { command } = loadAgentConfig(undefined, folder, {}).untrusted!
      const [node, main, ...args] = wordsOf(command!)
      expect([node, args]).toEqual([process.execPath, ['mcp', '--trust', join(folder, NAME)]])
      expect(main).toMatch(/^\/.*\/dist\/src\/cli\/main\.js$/)
    },
  )

  it.each(['line\nbreak', 'escape\u001b[2J', 'reordered\u202e'])(
    'is not given for a path with controls: %j',
    (name) => {
      const { at } = setUp()
      mkdirSync(join(at, name))
      writeFileSync(join(at, name, NAME), '{}')
      const untrusted = loadAgentConfig(undefined, join(at, name), {}).untrusted!
      expect(untrusted.command).toBeUndefined()
      expect(describeUntrusted(untrusted)).toMatch(/^[^\p{Cc}\u202e]+$/u)
    },
  )
})
