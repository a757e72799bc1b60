/** A store whose writes fail while it is broken. */
import { memoryStore, StoreError, type Store } from '../../src/store/index.js'

export function breakableStore() {
  const memory = memoryStore()
  const state = { isBroken: false, writes: 0 }
  const store: Store = {
    ...memory,
    write: async (changes) => {
      if (state.isBroken) throw new StoreError('STORE_FULL', 'the disk is full')
      state.writes += 1
      await memory.write(changes)
    },
  }
  return { memory, store, state }
}
