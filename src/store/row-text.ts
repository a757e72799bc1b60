/** Converts the rows of a store to text that every database can hold. */
import { crc32 } from 'node:zlib'

/** Writes an id or a name with the escapes of JSON, which leave ordinary texts unchanged. Some databases end a text at a NUL, and others refuse it. */
export const textOf = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Parses the text of a row. Returns undefined for a text with another checksum, and for one that no store has written. */
export function parseRow(body: unknown, checksum: unknown): { readonly id: string } | undefined {
  if (typeof body !== 'string' || crc32(body) !== checksum) return undefined
  try {
    const row = JSON.parse(body) as unknown
    const { id } = Object(row) as { readonly id?: unknown }
    return typeof id === 'string' ? (row as { readonly id: string }) : undefined
  } catch {
    return undefined
  }
}
