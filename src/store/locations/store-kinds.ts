/** The kinds of stores that a URL names. Any other location is a path: of a file, or of a folder with sessions. */
import { connectSchema } from '../postgres/postgres-store.js'
import type { StoreDatabase } from '../remote/store-database.js'

export interface StoreUrlOptions {
  /** The URL without these parameters. */
  readonly connection: string
  readonly schema?: string
  readonly session?: string
}

export interface StoreKind {
  readonly name: string
  /** The schemes of its URLs. The first one is shown. */
  readonly schemes: readonly [string, ...string[]]
  /** The part of a URL after the scheme. */
  readonly address: string
  /** The optional package that it needs, and the entry point of its own. */
  readonly needs: { readonly package: string; readonly entry: string }
  /** Prepares access; its first operation connects. */
  readonly database: (options: StoreUrlOptions) => StoreDatabase
}

export const STORE_KINDS: readonly StoreKind[] = [
  {
    name: 'PostgreSQL',
    schemes: ['postgres', 'postgresql'],
    address: 'USER@HOST:PORT/DATABASE',
    needs: { package: 'pg', entry: 'agent-tasks/postgres' },
    database: connectSchema,
  },
]
