/** A task of either kind in the journal. */
import type { AsyncEntry } from './async-entry.js'
import type { CommandEntry } from './command-entry.js'

export type PageEntry = AsyncEntry | CommandEntry
