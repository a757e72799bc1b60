/** JSON as the page shows it. */

/** Parses a text; undefined if it is not JSON. */
export function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** The entries of an object or array; undefined for other values. */
export function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  return typeof value === 'object' && value !== null ? Object.entries(value) : undefined
}

/** Summarises a folded value: `{3}`, `[12]`. */
export function folded(value: object): string {
  return Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`
}
