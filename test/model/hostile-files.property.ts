/**
 * Files beside a store that are not what they should be: real files, in the process of the test. A host opens the store and goes on with every other task, or
 * refuses it with an error that names the file. It waits for nobody, signals no process that is not its own, and reads and changes nothing elsewhere.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { folderName } from '../../src/features/output/run-files.js'
import { AsyncTaskManager, processRunner } from '../../src/index.js'
import { identityOf } from '../../src/system/process-identity.js'
import { sqliteStore, StoreError, type StoreChange } from '../../src/store/index.js'
import type { StoredJson } from '../../src/store/store.js'

const kinds = ['FIFO', 'folder', 'link', 'endless link', 'huge', 'empty', 'garbage'] as const
const names = [
  'stdout',
  'stderr',
  'stdout.tail',
  'stderr.tail',
  'stdout.size',
  'stderr.size',
  'uptime',
  'exit',
  'done',
  'identity',
] as const
const beside = [
  ...['-owner', '-owner.new', '-lock', '-wal', '-shm', '-journal', '-new'],
  ...['-history', '-history-wal', '-history-journal'],
] as const

export interface HostileFiles {
  /** What is in the place of files of the run. */
  readonly files: readonly { readonly name: (typeof names)[number]; readonly kind: (typeof kinds)[number] }[]
  /** What is in the place of a file beside the store. */
  readonly neighbour: { readonly suffix: (typeof beside)[number]; readonly kind: (typeof kinds)[number] } | undefined
  readonly garbage: Uint8Array
  /** What the row says of the program. */
  readonly pid: number | string | null
  readonly isOwnStart: boolean
  readonly token: string
  readonly hasExit: boolean
}

const hostileFiles: fc.Arbitrary<HostileFiles> = fc.record({
  files: fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), kind: fc.constantFrom(...kinds) }), {
    maxLength: 3,
    selector: ({ name }: { name: string }) => name,
  }),
  neighbour: fc.option(fc.record({ suffix: fc.constantFrom(...beside), kind: fc.constantFrom(...kinds) }), {
    nil: undefined,
    freq: 3,
  }),
  garbage: fc.uint8Array({ maxLength: 40 }),
  pid: fc.constantFrom(0, 1, -1, process.pid, -process.pid, process.ppid, 2 ** 31, 1.5, 1e300, '1', null),
  isOwnStart: fc.boolean(),
  token: fc.constantFrom('', 'token', 'a\u0000b'),
  hasExit: fc.boolean(),
})

export function hostileFilesProperty(): fc.IAsyncPropertyWithHooks<[HostileFiles]> {
  return fc.asyncProperty(hostileFiles, async (script) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-files-')))
    const file = join(folder, 'tasks.db')
    const rescues: (() => void)[] = []
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back below
    const { kill } = process
    const signalled: number[] = []
    process.kill = (pid, signal) => {
      if (signal === 0) return kill.call(process, pid, signal)
      signalled.push(pid)
      return true
    }
    try {
      writeFileSync(join(folder, 'secret'), 'secret')
      await leave(file, script)
      for (const { name, kind } of script.files) {
        const path = join(`${file}-runs`, folderName({ id: 'a', launchedAt: 1 }), name)
        rmSync(path, { force: true })
        make(kind, path, folder, script.garbage, rescues)
      }
      if (script.neighbour !== undefined) {
        const path = `${file}${script.neighbour.suffix}`
        rmSync(path, { force: true })
        make(script.neighbour.kind, path, folder, script.garbage, rescues)
      }
      await openOn(file, script)
      if (existsSync(join(folder, 'rescued'))) throw new Error('K8: it waited for the other end of a FIFO')
      if (signalled.length > 0) throw new Error(`K8: ${signalled.join()} was signalled`)
      if (readFileSync(join(folder, 'secret'), 'utf8') !== 'secret') throw new Error('K8: a file elsewhere was changed')
    } finally {
      process.kill = kill
      for (const rescue of rescues) rescue()
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

/** A host died while it ran `a`; the results of `b` are owed, and `c` was cancelled. */
async function leave(file: string, { pid, isOwnStart, token, hasExit }: HostileFiles): Promise<void> {
  const own = identityOf(process.pid)
  const program = { identity: { ...own, pid, ...(!isOwnStart && { start: '1' }) }, token }
  const store = sqliteStore(file)
  store.open()
  const put = (
    id: string,
    seq: number,
    status: 'running' | 'completed' | 'cancelled',
    run?: StoredJson,
  ): StoreChange => {
    const row = {
      id,
      owner: 'main',
      status,
      delivery: status === 'completed' ? 'owed' : 'none',
      attempt: 1,
      seq,
      launchedAt: 1,
    } as const
    const ended = status === 'running' ? {} : { completedAt: 2 }
    const record = {
      ...row,
      ...ended,
      ...(status === 'completed' && { output: {} }),
      subagentName: 's',
      goalPrompt: 'g',
    }
    return { table: 'tasks', put: { ...row, ...ended, record, ...(run && { run }) } }
  }
  const run = { graceMs: 0, params: {}, program }
  await store.write([put('a', 1, 'running', run), put('b', 2, 'completed'), put('c', 3, 'cancelled', run)])
  store.close()
  for (const id of ['a', 'c']) mkdirSync(join(`${file}-runs`, folderName({ id, launchedAt: 1 })), { recursive: true })
  if (!hasExit) return
  const runFolder = join(`${file}-runs`, folderName({ id: 'a', launchedAt: 1 }))
  for (const [name, text] of [
    ['stdout', 'x\n'],
    ['exit', '0\n'],
    ['done', ''],
  ] as const) {
    writeFileSync(join(runFolder, name), text)
  }
}

async function openOn(file: string, script: HostileFiles): Promise<void> {
  let manager: AsyncTaskManager
  try {
    const run = processRunner({ command: 'true', survivesHost: true, maxOutputBytes: 1000 })
    manager = new AsyncTaskManager({ store: sqliteStore(file), findRunner: () => run, onError: () => undefined })
  } catch (error) {
    if (script.neighbour === undefined || !(error instanceof StoreError)) throw error
    if (!error.message.includes(file)) {
      throw new Error(`K11: it does not name the file: ${error.message}`, { cause: error })
    }
    return
  }
  try {
    await manager.recovered
    const { settled } = await manager.waitFor(['a'])
    const statuses = ['b', 'c'].map((id) => manager.getTask(id)?.status)
    if (statuses.join() !== 'completed,cancelled') throw new Error(`K8: the others are ${statuses.join()}`)
    await manager.history().catch((error: unknown) => {
      if (!(error instanceof StoreError) || !error.message.includes(`${file}-history`)) throw error
    })
    if (settled[0]?.status !== 'completed' && settled[0]?.status !== 'failed') throw new Error('K8: it has not ended')
    if (JSON.stringify(settled).includes('secret')) throw new Error('K8: it has read a file elsewhere')
  } finally {
    await manager.dispose()
  }
}

function make(
  kind: (typeof kinds)[number],
  path: string,
  folder: string,
  garbage: Uint8Array,
  rescues: (() => void)[],
): void {
  switch (kind) {
    case 'FIFO': {
      if (spawnSync('mkfifo', [path]).status !== 0) throw new Error('mkfifo failed')
      const script = 'sleep 10; : > "$1"; exec 3<> "$0"; sleep 5'
      const rescue = spawn('sh', ['-c', script, path, join(folder, 'rescued')], { stdio: 'ignore', detached: true })
      rescues.push(() => process.kill(-(rescue.pid ?? 0), 'SIGKILL'))
      return
    }
    case 'folder': {
      mkdirSync(path)
      return
    }
    case 'link': {
      symlinkSync(join(folder, 'secret'), path)
      return
    }
    case 'endless link': {
      symlinkSync('/dev/zero', path)
      return
    }
    case 'huge':
      writeFileSync(path, '')
      {
        truncateSync(path, 2 ** 40)
        return
      }
    case 'empty': {
      writeFileSync(path, '')
      return
    }
    case 'garbage': {
      writeFileSync(path, garbage)
      return
    }
  }
}
