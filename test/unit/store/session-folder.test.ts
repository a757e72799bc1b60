/** Folders of sessions, on a real disk. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readStore, StoreError } from '../../../src/store/index.js'
import type { FileStore } from '../../../src/store/store.js'
import { hashOf, listSessions, sessionFolder } from '../../../src/store/sessions/session-folder.js'
import { sessionStore, type SessionStore } from '../../../src/store/sessions/session-store.js'
import { lockStore } from '../../../src/store/sqlite/owner-lock.js'
import type { TaskHistory } from '../../../src/store/index.js'
import { storedTask } from './stored-task.js'
import type { StoredTask } from '../../../src/store/store.js'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-sessions-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'sessions')
}

function sessionIn(folder: string, key = 'the key', isKept = () => true): SessionStore {
  const store = sessionStore(sessionFolder(folder, key), isKept)
  onTestFinished(() => store.close())
  return store
}

const filesOf = (folder: string, key = 'the key'): string[] =>
  readdirSync(folder).filter((name) => name.startsWith(hashOf(key)) && name.endsWith('.db'))

const put = (store: SessionStore, ...tasks: StoredTask[]): Promise<void> =>
  store.write(tasks.map((row) => ({ table: 'tasks', put: row })))

/** A store whose disk can be full. */
const fillable = (store: FileStore, isFull: () => boolean): FileStore => ({
  ...store,
  write: async (changes) => {
    if (isFull()) throw new StoreError('STORE_FULL', 'the disk is full')
    await store.write(changes)
  },
})

const idsOf = (store: SessionStore): string[] => store.open().tasks.map(({ id }) => id)

describe('a session', () => {
  it('K9: that has two processes has a file for each, and the next one has what both left', async () => {
    const folder = newFolder()
    const [first, second] = [sessionIn(folder), sessionIn(folder)]
    expect([idsOf(first), idsOf(second)]).toEqual([[], []])
    await put(first, storedTask('a'))
    await put(second, storedTask('b', { seq: 2 }))
    expect(filesOf(folder)).toHaveLength(2)
    second.close()
    const third = sessionIn(folder)
    expect(idsOf(third)).toEqual(['b'])
    await put(first, storedTask('c', { seq: 3 }))
    for (const store of [first, third]) store.close()
    const next = sessionIn(folder)
    expect(idsOf(next)).toEqual(['a', 'b', 'c'])
    expect([...next.earlierTasks]).toEqual(['a', 'b', 'c'])
    expect(filesOf(folder)).toEqual([`${hashOf('the key')}-1.db`])
  })

  it.runIf(process.getuid)('F13: refuses a store that this package cannot have created as it is', async () => {
    const folder = newFolder()
    const first = sessionIn(folder)
    first.open()
    await put(first, storedTask('a'))
    first.close()
    const file = join(folder, filesOf(folder)[0]!)
    chmodSync(file, 0o644)
    const refused = expect.objectContaining({
      code: 'STORE_INVALID',
      message: expect.stringMatching(
        /\.db: it has the mode 0644, and the files of a store have 0600\. .* chmod 600 \/\S+\.db\./,
      ) as string,
    }) as Error
    expect(() => sessionIn(folder).open()).toThrow(refused)
    expect(statSync(file).mode & 0o777).toBe(0o644)
    chmodSync(file, 0o600)
    writeFileSync(`${file}-wal`, '')
    chmodSync(`${file}-wal`, 0o644)
    expect(() => sessionIn(folder).open()).toThrow('.db-wal: it has the mode 0644')
    rmSync(`${file}-wal`)
    expect(idsOf(sessionIn(folder))).toEqual(['a'])
  })

  it.runIf(process.getuid)('F13: refuses a store of another user', async () => {
    const folder = newFolder()
    const first = sessionIn(folder)
    first.open()
    await put(first, storedTask('a'))
    first.close()
    const { uid } = statSync(join(folder, filesOf(folder)[0]!))
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(uid + 1)
    onTestFinished(() => getuid.mockRestore())
    expect(() => sessionIn(folder).open()).toThrow(
      `it belongs to the user ${uid}, and this process runs as ${uid + 1}. Its tasks can start programs`,
    )
  })

  it('K9: has nothing of another key, and leaves its files alone', async () => {
    const folder = newFolder()
    const other = sessionIn(folder, 'other')
    other.open()
    await put(other, storedTask('a'))
    other.close()
    expect(idsOf(sessionIn(folder))).toEqual([])
    expect(idsOf(sessionIn(folder, 'other'))).toEqual(['a'])
  })

  it('whose files hold the same task has it once, as it was changed last', async () => {
    const folder = newFolder()
    const copies = [storedTask('a', { seq: 7, delivery: 'delivered' }), storedTask('a', { seq: 5 })]
    const files = sessionFolder(folder, 'the key')
    files.lock()()
    for (const [index, row] of copies.entries()) {
      const store = files.store(index + 1)
      store.open()
      await store.write([{ table: 'tasks', put: row }])
      store.close()
    }
    expect(sessionIn(folder).open().tasks).toEqual([copies[0]])
    expect(readStore(join(folder, `${hashOf('the key')}-1.db`)).tasks).toEqual([copies[0]])
  })

  it('drops what need not be kept, and no task that runs or is in a message', async () => {
    const folder = newFolder()
    const first = sessionIn(folder)
    first.open()
    await put(first, storedTask('ended'), storedTask('carried'), storedTask('running', { status: 'running' }))
    const message = { id: 'd', owner: 'main', state: 'sent', at: 0, taskIds: ['carried'] } as const
    await first.write([{ table: 'deliveries', put: message }])
    first.close()
    const next = sessionIn(folder, 'the key', () => false)
    expect(idsOf(next)).toEqual(['carried', 'running'])
    next.close()
    expect(idsOf(sessionIn(folder))).toEqual(['carried', 'running'])
  })

  it('leaves no file when nothing is stored, and no trace when it was the last one', async () => {
    const folder = newFolder()
    const [first, second] = [sessionIn(folder), sessionIn(folder)]
    first.open()
    second.open()
    await put(first, storedTask('a'))
    await first.write([{ table: 'tasks', remove: 'a' }])
    first.close()
    expect(filesOf(folder)).toEqual([`${hashOf('the key')}-2.db`])
    second.close()
    expect(readdirSync(folder).sort()).toEqual(['.gitignore', 'sessions-lock'])
  })

  it('leaves no file when nothing could be stored, and its file when a row could not be removed', async () => {
    const folder = newFolder()
    const files = sessionFolder(folder, 'the key')
    let isFull = true
    const store = sessionStore({ ...files, store: (number) => fillable(files.store(number), () => isFull) }, () => true)
    store.open()
    await expect(put(store, storedTask('a'))).rejects.toThrow('the disk is full')
    store.close()
    expect(filesOf(folder)).toEqual([])
    store.open()
    isFull = false
    await put(store, storedTask('a'))
    isFull = true
    await expect(store.write([{ table: 'tasks', remove: 'a' }])).rejects.toThrow('the disk is full')
    store.close()
    expect(idsOf(sessionIn(folder))).toEqual(['a'])
  })

  it('keeps an empty file while another process has the folder', () => {
    const folder = newFolder()
    const store = sessionIn(folder)
    store.open()
    const files = sessionFolder(folder, 'the key')
    const locked = { ...files, lock: () => lockStore(join(folder, 'sessions'), 1) }
    const other = sessionStore(locked, () => true)
    other.open()
    const unlock = lockStore(join(folder, 'sessions'))
    other.close()
    unlock()
    expect(filesOf(folder)).toHaveLength(2)
    // It is nobody's: the next process uses it.
    sessionIn(folder).open()
    expect(filesOf(folder)).toHaveLength(2)
  })
})

describe('a folder', () => {
  it('is for its owner alone, with a name for each session', async () => {
    const folder = newFolder()
    const store = sessionIn(folder, '/home/me/project')
    store.open()
    await put(store, storedTask('a'))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(folder)) {
      expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0])
    }
    const file = join(folder, `${hashOf('/home/me/project')}-1.db`)
    expect(listSessions(folder)).toEqual([{ key: '/home/me/project', files: [file] }])
  })

  it.each([
    ['a file', (path: string) => writeFileSync(path, ''), /sessions: it is not a folder\. The folder was not changed/],
    ['a symbolic link', (path: string) => symlinkSync(tmpdir(), path), /sessions: stores do not follow symbolic links/],
    ['below a file', (path: string) => writeFileSync(join(path, '..'), ''), /sessions: it failed \(E/],
  ])('that is %s is refused, and left as it is', (what, make, problem) => {
    const folder = newFolder()
    if (what === 'below a file') rmSync(join(folder, '..'), { recursive: true })
    make(folder)
    expect(() => sessionIn(folder).open()).toThrow(problem)
  })

  it('that cannot be written is refused', () => {
    // The superuser may write to any folder but one of the kernel.
    const folder = process.getuid?.() === 0 ? '/sys/agent-tasks' : newFolder()
    if (!folder.startsWith('/sys')) {
      mkdirSync(folder, { mode: 0o500 })
      onTestFinished(() => chmodSync(folder, 0o700))
    }
    expect(() => sessionIn(folder).open()).toThrow(/read-only/)
  })

  it('K11: with a damaged file of the session is refused with the file, the session and what to do; another session starts', () => {
    const folder = newFolder()
    mkdirSync(folder)
    const damaged = join(folder, `${hashOf('the key')}-4.db`)
    writeFileSync(damaged, 'not a database', { mode: 0o600 })
    const first = sessionFolder(folder, 'the key').store(1)
    first.open()
    first.close()
    const open = (): unknown => sessionIn(folder).open()
    expect(open).toThrow(/-4\.db: it is not an SQLite database\. .*belongs to the session "the key"\. Repair the file/)
    expect(open).toThrow(expect.objectContaining({ code: 'STORE_INVALID' }) as Error)
    expect(idsOf(sessionIn(folder, 'other'))).toEqual([])
    rmSync(damaged)
    expect(idsOf(sessionIn(folder))).toEqual([])
  })
})

describe('the files of a session', () => {
  it('are numbered beyond nine, and no number comes again while anything of it is there', () => {
    const folder = newFolder()
    const files = sessionFolder(folder, 'the key')
    files.lock()()
    for (const rest of ['-2.db', '-10.db', '-11.db-wal', '-1.db']) {
      writeFileSync(join(folder, `${hashOf('the key')}${rest}`), '')
    }
    expect([files.numbers(), files.nextNumber()]).toEqual([[1, 2, 10], 12])
  })

  it('are removed with all that belongs to them; the key and the folder of programs go with the last one', () => {
    const folder = newFolder()
    const files = sessionFolder(folder, 'the key')
    files.lock()()
    const hash = hashOf('the key')
    const suffixes = ['', '-wal', '-shm', '-new', '-owner', '-owner.new', '-lock']
    for (const number of [1, 2]) {
      for (const rest of suffixes) writeFileSync(join(folder, `${hash}-${number}.db${rest}`), '')
    }
    mkdirSync(join(folder, `${hash}-runs`))
    const left = (): string[] =>
      readdirSync(folder)
        .filter((name) => name.startsWith(hash))
        .sort()
    files.remove(1)
    expect(left()).toEqual([...suffixes.map((rest) => `${hash}-2.db${rest}`), `${hash}-runs`, `${hash}.json`].sort())
    files.remove(2)
    expect(left()).toEqual([])
  })

  it('are locked again after a key could not be written, and what an earlier attempt left of it is replaced', () => {
    const folder = newFolder()
    const files = sessionFolder(folder, 'the key')
    const draft = join(folder, `${hashOf('the key')}.json.new`)
    mkdirSync(draft, { recursive: true })
    expect(() => files.lock()).toThrow(StoreError)
    rmSync(draft, { recursive: true })
    writeFileSync(draft, 'half of')
    files.lock()()
    expect(readdirSync(folder)).toContain(`${hashOf('the key')}.json`)
    expect(readdirSync(folder)).not.toContain(`${hashOf('the key')}.json.new`)
  })
})

describe('the history of a session', () => {
  const past = (id: string) => ({
    id,
    kind: 'task' as const,
    owner: 'main',
    name: 'agent',
    status: 'completed',
    completedAt: Date.now(),
    record: { goalPrompt: `goal of ${id}` },
  })
  const pastIn = async (store: SessionStore): Promise<string[]> =>
    (await (store.history as TaskHistory).query({ kind: 'task', limit: 10 })).map(({ id }) => id).sort()

  it('is shared by its processes, and outlives their files', async () => {
    const folder = newFolder()
    const [first, second] = [sessionIn(folder), sessionIn(folder)]
    for (const store of [first, second]) store.open()
    await first.history?.add([past('a')])
    await second.history?.add([past('b')])
    expect(await pastIn(first)).toEqual(['a', 'b'])
    for (const store of [first, second]) store.close()
    expect(filesOf(folder)).toEqual([`${hashOf('the key')}-history.db`])
    const next = sessionIn(folder)
    next.open()
    expect(await pastIn(next)).toEqual(['a', 'b'])
    expect(await pastIn(sessionIn(folder, 'another key'))).toEqual([])
  })

  it('has the tasks that the next process does not take over', async () => {
    const folder = newFolder()
    const first = sessionIn(folder)
    first.open()
    await put(first, storedTask('old', { completedAt: Date.now(), record: { subagentName: 'agent' } }))
    first.close()
    const next = sessionIn(folder, 'the key', () => false)
    expect(idsOf(next)).toEqual([])
    expect(await pastIn(next)).toEqual(['old'])
  })

  it('is removed when the session has no other file, and all of it is too old', async () => {
    const folder = newFolder()
    for (const key of ['old', 'recent', 'used']) {
      const store = sessionIn(folder, key)
      store.open()
      await store.history?.add([past(key)])
      if (key === 'used') await put(store, storedTask('a'))
      store.close()
    }
    const weekAgo = new Date(Date.now() - 8 * 86_400_000)
    for (const key of ['old', 'used']) {
      const names = readdirSync(folder).filter((name) => name.startsWith(hashOf(key)))
      for (const name of names) utimesSync(join(folder, name), weekAgo, weekAgo)
    }
    const store = sessionIn(folder, 'next')
    store.open()
    expect(filesOf(folder, 'old')).toEqual([])
    expect(existsSync(join(folder, `${hashOf('old')}.json`))).toBe(false)
    expect(filesOf(folder, 'recent')).toHaveLength(1)
    expect(filesOf(folder, 'used')).toHaveLength(2)
  })
})
