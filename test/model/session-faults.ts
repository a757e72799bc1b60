/** Planted faults of sessions, in the files as a process sees them. */
import type { StoreContents } from '../../src/store/index.js'
import type { AlterFiles } from './sessions.property.js'

export interface SessionFault {
  readonly name: string
  readonly invariant: 'K4' | 'K9'
  readonly description: string
  readonly alter: AlterFiles
}

const removals = (contents: StoreContents) => contents.tasks.map(({ id }) => ({ table: 'tasks', remove: id }) as const)

export const sessionFaults: readonly SessionFault[] = [
  {
    name: 'adopts-a-file-in-use',
    invariant: 'K9',
    description: 'a process that starts takes over a file that another one owns',
    alter: (files, disk) => ({
      ...files,
      store: (number) => {
        const store = files.store(number)
        return {
          ...store,
          open: () => {
            try {
              return store.open()
            } catch (error) {
              const contents = disk.contentsOf(number)
              if (contents === undefined) throw error
              return contents
            }
          },
        }
      },
    }),
  },
  {
    name: 'removed-before-it-is-moved',
    invariant: 'K4',
    description: 'what is moved is removed from the old file before it is in the new one',
    alter: (files) => ({
      ...files,
      store: (number) => {
        const store = files.store(number)
        return {
          ...store,
          open: () => {
            const contents = store.open()
            if (number !== files.numbers()[0]) store.writeNow(removals(contents))
            return contents
          },
        }
      },
    }),
  },
  {
    name: 'left-in-the-old-file',
    invariant: 'K4',
    description: 'what was moved stays in the old file as well',
    alter: (files) => ({
      ...files,
      remove: () => undefined,
      store: (number) => {
        const store = files.store(number)
        let isOld = false
        return {
          ...store,
          open: () => {
            isOld = number !== files.numbers()[0]
            return store.open()
          },
          writeNow: (changes) => {
            if (!isOld || changes.some((change) => 'put' in change)) store.writeNow(changes)
          },
        }
      },
    }),
  },
]
