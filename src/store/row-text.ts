/** Rows of a store as text, in a form that every database can hold. */

/** A NUL ends a text in some databases, and others refuse it: ids and names are stored with the escapes of JSON, which change nothing in ordinary ones. */
export const textOf = (text: string): string => JSON.stringify(text).slice(1, -1)

/** What has the text of a row; undefined for what no store has written, whatever its checksum is. */
export function parseRow(body: string): { readonly id: string } | undefined {
  try {
    const row = JSON.parse(body) as unknown
    const { id } = Object(row) as { readonly id?: unknown }
    return typeof id === 'string' ? (row as { readonly id: string }) : undefined
  } catch {
    return undefined
  }
}
