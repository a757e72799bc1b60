import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runProgram } from '../../../src/cli/program.js'
import { sqliteStore, type PastTask } from '../../../src/store/index.js'
import { listSessions, sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore } from '../../../src/store/sessions/session-store.js'
import { storedTask } from '../store/stored-task.js'

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'tasks.db')
}

async function run(...args: string[]) {
  let [out, err] = ['', '']
  const io = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    env: {},
    readStdin: () => Promise.resolve(''),
  }
  const code = await runProgram(args, io, '0')
  return { out, err, code }
}

async function fill(file: string): Promise<void> {
  const store = sqliteStore(file)
  store.open()
  await store.write([
    {
      table: 'tasks',
      put: storedTask('a', { record: { goalPrompt: 'look\u001b[31m into it' } }),
    },
    { table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: ['a'] } },
    { table: 'commandTasks', put: { id: 'c', instanceId: 'i', status: 'queued', seq: 1, createdAt: 0, record: {} } },
  ])
  store.close()
}

it('shows what is stored, without control characters', async () => {
  const file = storeFile()
  await fill(file)
  const { out, err, code } = await run('store', 'show', file)
  expect(code).toBe(0)
  expect(out).toMatch(/^TASK\s+OWNER\s+STATUS/)
  expect(out).toMatch(/a\s+main\s+completed\s+owed\s+1/)
  expect(out).toMatch(/c\s+i\s+queued/)
  expect(out).not.toContain('\u001b')
  expect(err).toContain('not confirmed yet: 1')
  expect(JSON.parse((await run('store', 'show', file, '--json')).out)).toMatchObject({ tasks: [{ id: 'a' }] })
})

it('exports every row as a line of JSON', async () => {
  const file = storeFile()
  await fill(file)
  const lines = (await run('store', 'export', file)).out.trim().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as { table: string }).table)).toEqual([
    'tasks',
    'deliveries',
    'commandTasks',
  ])
})

it('checks a file, and says what is wrong with it', async () => {
  const file = storeFile()
  await fill(file)
  expect((await run('store', 'check', file)).out).toContain('is sound: 1 tasks, 1 command tasks')
  expect(JSON.parse((await run('store', 'check', file, '--json')).out)).toMatchObject({ isSound: true })
  const empty = `${file}-empty`
  writeFileSync(empty, '')
  expect(await run('store', 'check', empty)).toMatchObject({ code: 2, err: expect.stringMatching(/empty/) as string })
  const missing = await run('store', 'show', `${file}-none`)
  expect(missing).toMatchObject({ code: 2, err: expect.stringMatching(/no such file/) as string })
})

describe('a folder of sessions', () => {
  async function folderWith(...keys: string[]): Promise<string> {
    const folder = join(storeFile(), '..', 'sessions')
    for (const key of keys) {
      const store = sessionStore(sessionFolder(folder, key), () => true)
      store.open()
      const task = { owner: 'main', status: 'completed', delivery: 'owed', attempt: 1, seq: 1, launchedAt: 0 } as const
      await store.write([{ table: 'tasks', put: { ...task, id: `of ${key}`, record: {} } }])
      store.close()
    }
    return folder
  }

  it('is shown as the sessions in it, with who uses them and what is owed', async () => {
    const folder = await folderWith('/home/me\u001b[31m', 'other')
    const used = sessionStore(sessionFolder(folder, 'other'), () => true)
    used.open()
    onTestFinished(() => used.close())
    const { out, code } = await run('store', 'show', folder)
    expect(code).toBe(0)
    expect(out).toMatch(/^SESSION\s+USED BY\s+TASKS\s+RUNNING\s+OWED\s+FILE\n/)
    expect(out).toMatch(new RegExp(`^other\\s+${process.pid}\\s+1\\s+0\\s+1\\s+[0-9a-f]{16}-1\\.db$`, 'm'))
    expect(out).toMatch(/nobody/)
    expect(out).not.toContain('\u001b')
    const { sessions } = JSON.parse((await run('store', 'show', folder, '--json')).out) as { sessions: object[] }
    expect(sessions).toContainEqual(expect.objectContaining({ session: 'other', pid: process.pid, tasks: 1, owed: 1 }))
    expect((await run('store', 'show', join(folder, '..'))).err).toContain('There are no sessions.')
  })

  it('is exported and checked file by file, and what is damaged is named', async () => {
    const folder = await folderWith('one', 'two')
    const lines = (await run('store', 'export', folder)).out.trim().split('\n')
    const rows = lines.map((line) => JSON.parse(line) as { session: string; row: { id: string } })
    expect(rows.map(({ session, row }) => [session, row.id]).sort()).toEqual([
      ['one', 'of one'],
      ['two', 'of two'],
    ])
    expect((await run('store', 'check', folder)).out.trim().split('\n')).toHaveLength(2)
    const [damaged = ''] = listSessions(folder)[0]?.files ?? []
    writeFileSync(damaged, 'nothing')
    const { out, err, code } = await run('store', 'check', folder)
    expect([code, out.split('is sound').length]).toEqual([2, 2])
    expect(err).toContain(damaged)
    expect(await run('store', 'show', folder)).toMatchObject({
      code: 2,
      out: expect.stringContaining('one') as string,
      err: expect.stringContaining(damaged) as string,
    })
  })
})

describe('tasks history', () => {
  const past = (id: string, completedAt: number, fields: Partial<PastTask> = {}): PastTask => ({
    id,
    kind: 'task',
    owner: 'main',
    name: 'research',
    status: 'completed',
    completedAt,
    record: { goalPrompt: `look at ${id}` },
    ...fields,
  })

  async function filled(): Promise<string> {
    const file = storeFile()
    const store = sqliteStore(file)
    store.open()
    const now = Date.now()
    await store.history?.add([
      past('past', now - 3000, { record: { goalPrompt: 'the login\u001b[31m page' } }),
      past('failed', now - 4000, { status: 'failed', owner: 'other' }),
      past('command', now - 2000, { kind: 'command task', owner: 'browser', name: 'open pages' }),
    ])
    await store.write([
      {
        table: 'tasks',
        put: storedTask('kept', {
          completedAt: now - 1000,
          record: { goalPrompt: 'just now', subagentName: 'research' },
        }),
      },
      { table: 'tasks', put: storedTask('running', { status: 'running', delivery: 'none' }) },
    ])
    onTestFinished(() => store.close())
    return file
  }
  const idsOf = ({ out }: { readonly out: string }): string[] =>
    out.trim() === ''
      ? []
      : out
          .trim()
          .split('\n')
          .map((line) => (JSON.parse(line) as { task_id: string }).task_id)

  it('lists what has ended, the latest first, also while the store is open', async () => {
    const file = await filled()
    const { out, code } = await run('tasks', 'history', '--store', file)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^TASK\s+SUBAGENT[^]*kept[^]*command\s+\(commands\)\s+browser[^]*past[^]*failed\s+research\s+other\s+failed/,
    )
    expect(out).not.toContain('running')
    expect(out).not.toContain('\u001b')
    const list = async (...args: string[]) => idsOf(await run('tasks', 'history', '--store', file, '--json', ...args))
    expect(await list('--kind', 'command')).toEqual(['command'])
    expect(await list('--text', 'LOGIN')).toEqual(['past'])
    expect(await list('--status', 'failed')).toEqual(['failed'])
    expect(await list('--owner', 'other')).toEqual(['failed'])
    expect(await run('tasks', 'history', '--store', file, '--status', 'done')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--status: got "done", expected one of completed, failed, cancelled') as string,
    })
    expect(await list('--name', 'research')).toEqual(['kept', 'past', 'failed'])
    const first = await run('tasks', 'history', '--store', file, '--json', '--limit', '2')
    const place = /--before "(.*)"/.exec(first.err)?.[1] ?? ''
    expect([idsOf(first), await list('--before', place)]).toEqual([
      ['kept', 'command'],
      ['past', 'failed'],
    ])
  })

  it('lists the tasks of all sessions of a folder', async () => {
    const folder = join(storeFile(), '..')
    for (const key of ['one', 'two']) {
      const session = sessionStore(sessionFolder(folder, key), () => true)
      session.open()
      await session.history?.add([past(`of ${key}`, Date.now())])
      session.close()
    }
    expect(idsOf(await run('tasks', 'history', '--store', folder, '--json')).sort()).toEqual(['of one', 'of two'])
    expect((await run('tasks', 'history', '--store', folder, '--text', 'nothing')).err).toContain(
      'no task that matches',
    )
  })

  it.each([
    [[], 'Name a store: --store FILE|DIR|postgres://…, or TASKS_STORE.'],
    [['--store', 'FILE', '--kind', 'x'], '--kind'],
    [['--store', 'FILE', '--before', 'x'], '--before'],
    [['--store', 'FILE', '--limit', '0'], '--limit'],
    [['--store', '/nowhere/tasks.db'], '/nowhere/tasks.db: there is no such file'],
  ])('names what is wrong with %j', async (args, message) => {
    const file = await filled()
    const { code, err } = await run('tasks', 'history', ...args.map((arg) => (arg === 'FILE' ? file : arg)))
    expect([code, err]).toEqual([2, expect.stringContaining(message)])
  })
})

it('copies a store, and refuses what holds tasks already', async () => {
  const file = storeFile()
  await fill(file)
  const copy = `${file}-copy.db`
  expect(await run('store', 'copy', file, copy)).toMatchObject({
    code: 0,
    out: expect.stringContaining('Copied: 1 tasks') as string,
  })
  expect((await run('store', 'export', copy)).out).toBe((await run('store', 'export', file)).out)
  expect(await run('store', 'copy', file, copy)).toMatchObject({
    code: 2,
    err: expect.stringContaining('it holds tasks already') as string,
  })
  const none = `${file}-missing.db`
  expect(await run('store', 'copy', none, `${file}-target.db`)).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('there is no such file') as string,
  })
  expect([none, `${file}-target.db`].map((path) => existsSync(path))).toEqual([false, false])
  expect(await run('store', 'copy', join(file, '..'), `${file}-none.db`)).toMatchObject({
    code: 2,
    err: expect.stringContaining('folder of sessions') as string,
  })
})

it('shows the workers of a store without the hashes of their secrets', async () => {
  const file = storeFile()
  const store = sqliteStore(file)
  store.open()
  const registration = { tools: [{ name: 'look' }] }
  await store.write([{ table: 'instances', put: { id: 'worker', secretSha256: 'c0ffee', registration } }])
  store.close()
  const { out } = await run('store', 'show', file, '--json')
  expect((JSON.parse(out) as { workers: unknown }).workers).toEqual([{ id: 'worker', registration }])
  expect(out).not.toContain('c0ffee')
})
