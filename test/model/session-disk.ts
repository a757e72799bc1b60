/** A folder of sessions in memory. A process that uses it can die at any step, and does nothing after that. */
import type { SessionFiles } from '../../src/store/sessions/session-store.js'
import { memoryStore, type MemoryStore, type StoreContents } from '../../src/store/index.js'
import type { FileStore, StoreChange } from '../../src/store/store.js'
import { StoreInUseError } from '../../src/store/store-errors.js'

/** The end of a process in the middle of what it does. */
export class ProcessDied extends Error {}

/** One process, which dies before its step number `diesAt`. */
export class DiskUser {
  isDead = false
  #steps = 0
  readonly #diesAt: number

  constructor(diesAt = Infinity) {
    this.#diesAt = diesAt
  }

  /** Counts a step. @throws ProcessDied */
  step(): void {
    this.#steps += 1
    if (this.#steps >= this.#diesAt) this.isDead = true
    if (this.isDead) throw new ProcessDied()
  }
}

interface File {
  store: MemoryStore
  owner: DiskUser | undefined
}

export class SessionDisk {
  readonly #files = new Map<number, File>()
  #locked: DiskUser | undefined

  /** The files as a process sees them. */
  filesOf(user: DiskUser): SessionFiles {
    return {
      directory: undefined,
      lock: () => {
        user.step()
        if (this.#locked?.isDead === false) throw new StoreInUseError('the folder', undefined)
        this.#locked = user
        return () => {
          if (this.#locked === user) this.#locked = undefined
        }
      },
      numbers: () => [...this.#files.keys()].sort((a, b) => a - b),
      nextNumber: () => Math.max(0, ...this.#files.keys()) + 1,
      store: (number) => this.#store(number, user),
      remove: (number) => {
        user.step()
        if (this.#files.get(number)?.owner?.isDead === false) throw new Error(`removed file ${number}, which is in use`)
        this.#files.delete(number)
      },
    }
  }

  /** What a file holds. */
  contentsOf(number: number): StoreContents | undefined {
    return this.#files.get(number)?.store.contents()
  }

  get size(): number {
    return this.#files.size
  }

  #store(number: number, user: DiskUser): FileStore {
    let open: MemoryStore | undefined
    const writeNow = (changes: readonly StoreChange[]): void => {
      user.step()
      void open?.write(changes)
    }
    return {
      open: () => {
        user.step()
        const file = this.#files.get(number) ?? { store: memoryStore(), owner: undefined }
        if (file.owner?.isDead === false) throw new StoreInUseError(`file ${number}`, undefined)
        this.#files.set(number, file)
        file.owner = user
        file.store = open = file.store.copy()
        return open.open()
      },
      write: async (changes) => writeNow(changes),
      writeNow,
      close: () => {
        if (user.isDead) return
        open?.close()
        const file = this.#files.get(number)
        if (file !== undefined && file.store === open) file.owner = undefined
      },
    }
  }
}
