/** Converts rows of a store to text that every database can hold. */

/** Some databases end a text at a NUL, others refuse it. Ids and names are stored with JSON's escapes, which leave ordinary texts unchanged. */
export const textOf = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Parses the text of a row; undefined for a text that no store has written, whatever its checksum is. */
export function parseRow(body: string): { readonly id: string } | undefined {
  try {
    const row = JSON.parse(body) as unknown
    const { id } = Object(row) as { readonly id?: unknown }
    return typeof id === 'string' ? (row as { readonly id: string }) : undefined
  } catch {
    return undefined
  }
}
