/** The errors for an unknown instance id, and for tools that no instance has together. */

/** The number of names in an error, and the characters of each. */
const MAX_NAMED = 10
const MAX_CHARS = 64

/** @param known the ids of the registered instances */
export function instanceNotFound(instanceId: string, known: readonly string[]): string {
  return `Instance not found: ${instanceId}. ${whatExists(known)}`
}

function whatExists(known: readonly string[]): string {
  if (known.length === 0) return 'There is no instance.'
  return `Known instances: ${someOf(known)}.`
}

/**
 * @param wanted the tools of a task
 * @param offers the connected instances, with their tools
 */
export function toolsNotFound(
  wanted: readonly string[],
  offers: readonly { readonly id: string; readonly names: readonly string[] | undefined }[],
): string {
  const partial = offers.map(({ id, names = [] }) => {
    const missing = wanted.filter((tool) => !names.includes(tool))
    return `${id} (has no ${someOf(missing)})`
  })
  return `No connected instance has all tools of the task (${someOf(wanted)}): ${someOf(partial)}.`
}

function someOf(names: readonly string[]): string {
  const named = names
    .slice(0, MAX_NAMED)
    .map((name) => (name.length <= MAX_CHARS ? name : `${name.slice(0, MAX_CHARS)}…`))
  return `${named.join(', ')}${names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''}`
}
