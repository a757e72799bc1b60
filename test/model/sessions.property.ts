/**
 * The processes of one session against what they owe: they start, take up work, tell its results, end, and die at any step. No result is
 * lost, and none is in the hands of two processes.
 */
import fc from 'fast-check'
import { sessionStore, type SessionFiles, type SessionStore } from '../../src/store/sessions/session-store.js'

import { DiskUser, ProcessDied, SessionDisk } from './session-disk.js'
import type { StoredTask } from '../../src/store/store.js'

type Action =
  | { readonly type: 'start'; readonly diesAt: number }
  | { readonly type: 'work' | 'tell' | 'close' | 'kill'; readonly index: number }

/** Changes the files as a process sees them. */
export type AlterFiles = (files: SessionFiles, disk: SessionDisk) => SessionFiles

interface Process {
  readonly user: DiskUser
  readonly store: SessionStore
  readonly held: Set<string>
}

const index = fc.nat(5)
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constant('start' as const), diesAt: fc.integer({ min: 1, max: 30 }) }),
    },
    { weight: 4, arbitrary: fc.record({ type: fc.constant('work' as const), index }) },
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constantFrom('tell' as const, 'close' as const, 'kill' as const), index }),
    },
  ),
  { maxLength: 30, size: 'max' },
)

class Session {
  readonly #disk = new SessionDisk()
  readonly #alter: AlterFiles
  readonly #owed = new Set<string>()
  readonly #live = new Set<Process>()
  #tasks = 0

  constructor(alter: AlterFiles) {
    this.#alter = alter
  }

  async perform(action: Action): Promise<void> {
    if (action.type === 'start') {
      await this.start(action.diesAt)
      return
    }
    const process = [...this.#live][action.index % Math.max(1, this.#live.size)]
    if (process === undefined) return
    const { user, store, held } = process
    if (action.type === 'kill') {
      user.isDead = true
      this.#live.delete(process)
      return
    }
    await this.#do(process, async () => {
      if (action.type === 'work') {
        const id = `task-${(this.#tasks += 1)}`
        await store.write([{ table: 'tasks', put: taskRow(id, this.#tasks) }])
        held.add(id)
        this.#owed.add(id)
      } else if (action.type === 'tell') {
        const [id] = held
        if (id === undefined) return
        await store.write([{ table: 'tasks', remove: id }])
        held.delete(id)
        this.#owed.delete(id)
      } else {
        this.#live.delete(process)
        store.close()
      }
    })
  }

  async start(diesAt = Infinity): Promise<Process | undefined> {
    const user = new DiskUser(diesAt)
    const files = this.#alter(this.#disk.filesOf(user), this.#disk)
    const store = sessionStore(files, ({ delivery }) => delivery === 'owed')
    const process: Process = { user, store, held: new Set() }
    await this.#do(process, () => {
      for (const { id } of store.open().tasks) {
        if (!this.#owed.has(id)) throw new Error(`${id} was told, and is there again`)
        for (const other of this.#live) {
          if (other.held.has(id)) throw new Error(`${id} is in the hands of two processes`)
        }
        process.held.add(id)
      }
      this.#live.add(process)
    })
    return user.isDead ? undefined : process
  }

  /** Kills every process and starts another one, which has to find everything. */
  async finish(): Promise<void> {
    for (const { user } of this.#live) user.isDead = true
    this.#live.clear()
    const held = (await this.start())?.held ?? new Set()
    for (const id of this.#owed) if (!held.has(id)) throw new Error(`${id} is lost`)
    if (this.#disk.size !== 1) throw new Error(`${this.#disk.size} files are left`)
  }

  async #do(process: Process, run: () => void | Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      if (!(error instanceof ProcessDied)) throw error
      this.#live.delete(process)
    }
  }
}

const taskRow = (id: string, seq: number): StoredTask => ({
  id,
  owner: 'main',
  status: 'completed',
  delivery: 'owed',
  attempt: 1,
  seq,
  launchedAt: 0,
  completedAt: 0,
  record: {},
})

/** K4 and K9, for sessions. */
export function sessionsProperty(alter: AlterFiles = (files) => files): fc.IAsyncProperty<[Action[]]> {
  return fc.asyncProperty(actions, async (sequence) => {
    const session = new Session(alter)
    for (const action of sequence) await session.perform(action)
    await session.finish()
  })
}
