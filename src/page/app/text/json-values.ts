/** JSON as the page shows it. */

/** Parses a text. Returns undefined if the text is not JSON. */
export function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** Returns the entries of an object or array; undefined for other values. */
export function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  return typeof value === 'object' && value !== null ? Object.entries(value) : undefined
}

/** Returns the number of entries in brackets: `{3}` for an object, `[12]` for an array. */
export function folded(value: object): string {
  return Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`
}
