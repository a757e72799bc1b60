/** Faults of kept turns, each in the store that a host uses: the race with crashes must find each. */
import type { Store, StoreChange } from '../../src/store/index.js'

export interface KeptTurnsFault {
  readonly name: string
  readonly invariant: 'H8'
  readonly description: string
  readonly change: (store: Store) => Partial<Store>
}

const leavingOut =
  (isLeftOut: (change: StoreChange) => boolean): KeptTurnsFault['change'] =>
  (store) => ({ write: (changes) => store.write(changes.filter((change) => !isLeftOut(change))) })

const inTwo =
  (isFirst: (change: StoreChange) => boolean): KeptTurnsFault['change'] =>
  (store) => ({
    write: async (changes) => {
      const first = changes.filter(isFirst)
      if (first.length > 0) await store.write(first)
      await store.write(changes.filter((change) => !isFirst(change)))
    },
  })

export const keptTurnsFaults: readonly KeptTurnsFault[] = [
  {
    name: 'turn-before-its-results',
    invariant: 'H8',
    description: 'A turn is written before what it has delivered.',
    change: inTwo(({ table }) => table === 'turns'),
  },
  {
    name: 'turn-after-its-results',
    invariant: 'H8',
    description: 'A turn is written after what it has delivered.',
    change: inTwo(({ table }) => table !== 'turns'),
  },
  {
    name: 'turn-answered-before-the-write',
    invariant: 'H8',
    description: 'What is written reaches the disk a moment after the write has returned.',
    change: (store) => ({
      write: (changes) => {
        setImmediate(() => void store.write(changes).catch(() => undefined))
        return Promise.resolve()
      },
    }),
  },
  {
    name: 'forgets-inputs',
    invariant: 'H8',
    description: 'A message that waits for its turn is not stored.',
    change: leavingOut(({ table }) => table === 'featureStates'),
  },
  {
    name: 'forgets-launches',
    invariant: 'H8',
    description: 'What a turn has launched is not stored, so a repeated turn launches the same again.',
    change: leavingOut(
      (change) => change.table === 'featureStates' && 'put' in change && change.put.feature === 'turnLaunches',
    ),
  },
  {
    name: 'reads-no-turns',
    invariant: 'H8',
    description: 'A message that is sent again is not compared with the kept turns.',
    change: () => ({ turns: { read: () => Promise.resolve([]) } }),
  },
  {
    name: 'turn-confirms-nothing',
    invariant: 'H8',
    description: 'The messages in a kept turn stay unconfirmed.',
    change: leavingOut((change) => change.table === 'deliveries' && 'remove' in change),
  },
]
