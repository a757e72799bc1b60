import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { memoryStore, sqliteStore, type Store, type StoreChange } from '../../../src/store/index.js'
import { storeContract, type StoreSubject } from '../../../src/testing/store-contract.js'

function sqliteSubject(): StoreSubject {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-store-'))
  const file = join(folder, 'tasks.db')
  return {
    store: sqliteStore(file),
    again: () => sqliteStore(file),
    dispose: () => rmSync(folder, { recursive: true }),
  }
}

function memorySubject() {
  const store = memoryStore()
  return { store, again: () => store }
}

describe('sqliteStore keeps the contract of a store: it', () => {
  for (const { name, run } of storeContract(sqliteSubject)) it(name, run)
})

describe('memoryStore keeps the contract of a store: it', () => {
  for (const { name, run } of storeContract(memorySubject)) it(name, run)
})

describe('the contract of a store fails for a store that', () => {
  const broken: Readonly<Record<string, (store: Store) => Store>> = {
    'forgets removals': (store) => ({
      ...store,
      write: (changes) => store.write(changes.filter((change) => 'put' in change)),
    }),
    'writes batches row by row': (store) => ({
      ...store,
      write: async (changes) => {
        for (const change of changes) await store.write([change])
      },
    }),
    'answers before it has written': (store) => ({
      ...store,
      write: (changes) => {
        setImmediate(() => void store.write(changes).catch(() => undefined))
        return Promise.resolve()
      },
    }),
    'throws in place of rejecting': (store) => ({
      ...store,
      write: (changes) => {
        JSON.stringify(changes)
        return store.write(changes)
      },
    }),
    'loses the last change': (store) => ({ ...store, write: (changes) => store.write(changes.slice(0, -1)) }),
    'reverses a batch': (store) => ({ ...store, write: (changes) => store.write([...changes].reverse()) }),
    'hides that a write was refused': (store) => ({
      ...store,
      write: (changes) => store.write(changes).catch(() => {}),
    }),
    'loses a write that begins during another': (store) => {
      let isWriting = false
      return {
        ...store,
        write: async (changes) => {
          if (isWriting) return
          isWriting = true
          try {
            await store.write(changes)
          } finally {
            isWriting = false
          }
        },
      }
    },
    'applies the last of the writes that wait first': (store) => {
      const waiting: (readonly StoreChange[])[] = []
      return {
        ...store,
        write: async (changes) => {
          waiting.push(changes)
          await Promise.resolve()
          await store.write(waiting.pop()!)
        },
      }
    },
  }
  for (const [what, breakIt] of Object.entries(broken)) {
    it(what, async () => {
      const cases = storeContract(() => {
        const subject = memorySubject()
        return { ...subject, store: breakIt(subject.store) }
      })
      const ends = await Promise.allSettled(cases.map(({ run }) => run()))
      expect(ends.map(({ status }) => status)).toContain('rejected')
    })
  }
})
