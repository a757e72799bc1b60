/** Planted faults of the page. */
import type { PageState } from '../../src/page/page-state.js'
import type { AlterPage } from './page.property.js'

export interface PageFault extends AlterPage {
  readonly name: string
  readonly invariant: 'G1' | 'G2' | 'G3' | 'G4'
  readonly description: string
}

/** Changes what a reader gets that comes back. */
const alterSince =
  (change: (changes: NonNullable<ReturnType<PageState['since']>>) => ReturnType<PageState['since']>) =>
  (state: PageState): void => {
    const since = state.since.bind(state)
    state.since = (version) => {
      const changes = since(version)
      return changes && change(changes)
    }
  }

const alterTitle =
  (change: (title: string) => string) =>
  (state: PageState): void => {
    const rowOf = state.rowOf.bind(state)
    state.rowOf = (entry) => {
      const row = rowOf(entry)
      return { ...row, title: change(row.title) }
    }
  }

export const pageFaults: readonly PageFault[] = [
  {
    name: 'any-token',
    invariant: 'G1',
    description: 'a request needs a token, but any will do',
    access: (access) => ({ ...access, isAuthorized: ({ headers }) => headers.authorization !== undefined }),
  },
  {
    name: 'foreign-page-let-in',
    invariant: 'G1',
    description: 'the page of another origin may read and act',
    access: (access) => ({ ...access, checkSource: () => undefined }),
  },
  {
    name: 'ended-never-forgotten',
    invariant: 'G2',
    description: 'ended tasks stay for ever',
    state: ({ journal }) => {
      journal.end = (entry) => {
        entry.isEnded = true
      }
    },
  },
  {
    name: 'live-forgotten',
    invariant: 'G2',
    description: 'a task may be forgotten before it has ended',
    state: ({ journal }) => {
      const add = journal.add.bind(journal)
      journal.add = (entry) => {
        add(entry)
        journal.end(entry)
        entry.isEnded = false
      }
    },
  },
  {
    name: 'text-escaped',
    invariant: 'G3',
    description: 'the text of a task is made into markup',
    state: alterTitle((title) => title.replace(/&/g, '&amp;').replace(/</g, '&lt;')),
  },
  {
    name: 'text-trimmed',
    invariant: 'G3',
    description: 'a text loses what cannot be seen',
    // eslint-disable-next-line no-control-regex
    state: alterTitle((title) => title.replace(/[\u0000-\u001f]/g, '').trim()),
  },
  {
    name: 'removals-not-told',
    invariant: 'G4',
    description: 'a reader that comes back keeps what was forgotten meanwhile',
    state: alterSince(({ rest: { removed: _, ...rest }, ...changes }) => ({ ...changes, rest })),
  },
  {
    name: 'last-change-lost',
    invariant: 'G4',
    description: 'a reader that comes back misses the last change',
    state: alterSince((changes) => ({ ...changes, tasks: changes.tasks.slice(0, -1) })),
  },
]
