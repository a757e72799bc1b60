import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { memoryStore, sqliteStore, type Store } from '../../../src/store/index.js'
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

function memorySubject(): StoreSubject {
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
      write: (changes) => changes.forEach((change) => store.write([change])),
    }),
    'loses the last change': (store) => ({ ...store, write: (changes) => store.write(changes.slice(0, -1)) }),
    'reverses a batch': (store) => ({ ...store, write: (changes) => store.write([...changes].reverse()) }),
  }
  for (const [what, breakIt] of Object.entries(broken)) {
    it(what, () => {
      const cases = storeContract(() => {
        const subject = memorySubject()
        return { ...subject, store: breakIt(subject.store) }
      })
      const failed = cases.filter(({ run }) => {
        try {
          run()
          return false
        } catch {
          return true
        }
      })
      expect(failed).not.toEqual([])
    })
  }
})
