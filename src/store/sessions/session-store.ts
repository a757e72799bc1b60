/**
 * The store of one session. A session is all processes with the same session key, one after another or at the same time. Each process owns one file.
 * It starts with a file that has no owner, or with a new one, and moves the content of all other files without an owner into it.
 *
 * 1. Files are opened, created and removed under the lock of their folder. So one process takes over all files without an owner, and no file is removed
 * while another process is about to open it.
 * 2. Content that moves is first written to the new file, and then removed from the old one. After a crash in between, both files have it. The next
 * process takes over both, and finds the same ids.
 * 3. Only an empty file is removed, and only by the process that owns it.
 */

import type { FileStore, LocalStore, Store, StoreChange, StoreContents, StoredTask, StoreTable } from '../store.js'
import { contentsOf, idOf, putsOf } from '../store.js'
import { StoreError, StoreInUseError } from '../store-errors.js'
import type { SqliteHistory } from '../history/sqlite-history.js'
import { addToHistory, withoutOld } from './kept-tasks.js'

export interface SessionFiles {
  /** The history that all processes of the session share. */
  readonly history?: SqliteHistory | undefined
  /** The folder for the files of programs. All processes of the session share it, because the files of a running program cannot move. */
  readonly directory: string | undefined
  /**
   * Locks the folder: other processes wait before they open, create or remove files.
   * @returns a function that releases the lock
   * @throws StoreError when the folder cannot be locked
   */
  lock(): () => void
  /** The numbers of the existing store files, in order. */
  numbers(): readonly number[]
  /** A number that no store file has. */
  nextNumber(): number
  /** The store in the file with this number. Opening the store creates the file. */
  store(number: number): FileStore
  /** Removes the file with this number, which must have no owner. */
  remove(number: number): void
}

/** The store of one process of a session. */
export interface SessionOfStore extends Store {
  /** The ids of the tasks that earlier processes of the session left in the store. */
  readonly earlierTasks: ReadonlySet<string>
  /**
   * Checks that the store can be opened, and leaves it as it was.
   * @throws StoreError when a file of the session cannot be read
   */
  check(): void
}

export interface SessionStore extends SessionOfStore, LocalStore {
  close(): void
}

interface OwnedFile {
  readonly number: number
  readonly store: FileStore
  readonly contents: StoreContents
}

/**
 * Creates the store of a process.
 * @param isKept whether an ended task of an earlier process is taken over. It is not asked for a task in an unconfirmed message, which is always taken over
 */
export function sessionStore(files: SessionFiles, isKept: (task: StoredTask) => boolean): SessionStore {
  const earlierTasks = new Set<string>()
  const rows = new Set<string>()
  let own: OwnedFile | undefined
  return {
    get name() {
      return own?.store.name
    },
    directory: files.directory,
    history: files.history,
    earlierTasks,
    check: () => {
      const unlock = files.lock()
      try {
        for (const { store } of adopt(files)) store.close()
        if (files.numbers().length > 0) return
        const { store, number } = create(files)
        store.close()
        files.remove(number)
      } finally {
        unlock()
      }
    },
    open: () => {
      if (own !== undefined) throw new StoreInUseError('The session', process.pid)
      const unlock = files.lock()
      try {
        const [opened, ...others] = adopt(files)
        const file = opened ?? create(files)
        const { contents, dropped } = gather(files, file, others, isKept)
        addToHistory(files.history, dropped)
        own = file
        for (const { id } of contents.tasks) earlierTasks.add(id)
        note(rows, putsOf(contents))
        return contents
      } finally {
        unlock()
      }
    },
    write: async (changes) => {
      if (own === undefined) throw new StoreError('STORE_CLOSED', 'The store of the session is not open.')
      await own.store.write(changes)
      note(rows, changes)
    },
    close: () => {
      if (own === undefined) return
      const { store, number } = own
      own = undefined
      files.history?.close()
      if (rows.size > 0) store.close()
      else closeAndRemove(files, store, number)
    },
  }
}

/**
 * Takes ownership of every file without an owner.
 * @throws StoreError when a file cannot be read; then this process owns no file
 */
function adopt(files: SessionFiles): OwnedFile[] {
  const adopted: OwnedFile[] = []
  for (const number of files.numbers()) {
    const store = files.store(number)
    try {
      adopted.push({ number, store, contents: store.open() })
    } catch (error) {
      if (error instanceof StoreInUseError) continue
      for (const other of adopted) other.store.close()
      throw error
    }
  }
  return adopted
}

function create(files: SessionFiles): OwnedFile {
  const number = files.nextNumber()
  const store = files.store(number)
  return { number, store, contents: store.open() }
}

/**
 * Moves the content of all files into the file of this process, except tasks that are not kept.
 * @throws StoreError when the content cannot be written; then no content is lost, and this process owns no file
 */
function gather(
  files: SessionFiles,
  own: OwnedFile,
  others: readonly OwnedFile[],
  isKept: (task: StoredTask) => boolean,
): { readonly contents: StoreContents; readonly dropped: readonly StoredTask[] } {
  const open = new Set([own, ...others])
  try {
    const all = union([own, ...others].map(({ contents }) => contents))
    const { kept: contents, dropped } = withoutOld(all, isKept)
    const changes = [
      ...(others.length > 0 ? putsOf(contents) : []),
      ...dropped.map(({ id }): StoreChange => ({ table: 'tasks', remove: id })),
    ]
    if (changes.length > 0) own.store.writeNow(changes)
    for (const other of others) {
      // The old file is emptied before it is removed. If its removal fails, its content is not found a second time.
      other.store.writeNow(removals(other.contents))
      open.delete(other)
      other.store.close()
      files.remove(other.number)
    }
    return { contents, dropped }
  } catch (error) {
    for (const { store } of open) store.close()
    throw error
  }
}

/** Merges the rows of several files. If two rows have the same id, the one with the later change is used. */
function union(contents: readonly StoreContents[]): StoreContents {
  const seqOf = (row: object): number => ('seq' in row && typeof row.seq === 'number' ? row.seq : 0)
  return contentsOf((table) => {
    const byId = new Map<string, StoreContents[StoreTable][number]>()
    for (const row of contents.flatMap((each): StoreContents[StoreTable][number][] => [...each[table]])) {
      const known = byId.get(row.id)
      if (known === undefined || seqOf(row) > seqOf(known)) byId.set(row.id, row)
    }
    return [...byId.values()].sort((a, b) => seqOf(a) - seqOf(b))
  })
}

const removals = (contents: StoreContents): StoreChange[] =>
  putsOf(contents).map((put) => ({ table: put.table, remove: idOf(put) }) as StoreChange)

function note(rows: Set<string>, changes: readonly StoreChange[]): void {
  for (const change of changes) rows['put' in change ? 'add' : 'delete'](`${change.table} ${idOf(change)}`)
}

function closeAndRemove(files: SessionFiles, store: LocalStore, number: number): void {
  let unlock: (() => void) | undefined
  try {
    unlock = files.lock()
  } catch {
    // The file could not be removed. This is harmless, because the next process of the session uses the empty file.
  }
  store.close()
  if (unlock === undefined) return
  try {
    files.remove(number)
  } finally {
    unlock()
  }
}
