/** The maximum number of ids in a text. */
const MAX_SHOWN = 20

/** Writes ids as a list. A long list ends with the number of those that it leaves out. */
export function idList(ids: readonly string[]): string {
  const more = ids.length > MAX_SHOWN ? ` and ${ids.length - MAX_SHOWN} more` : ''
  return `${ids.slice(0, MAX_SHOWN).join(', ')}${more}`
}
