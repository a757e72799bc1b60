/** The error messages for an unknown instance id, and for a task whose tools no single instance has. */

/** The maximum number of names in a message, and the maximum length of each name in characters. */
const MAX_NAMED = 10
const MAX_CHARS = 64

/**
 * The message for an unknown instance id.
 * @param known the ids of the registered instances
 */
export function instanceNotFound(instanceId: string, known: readonly string[]): string {
  return `Instance not found: ${instanceId}. ${whatExists(known)}`
}

function whatExists(known: readonly string[]): string {
  if (known.length === 0) return 'There is no instance.'
  return `Known instances: ${someOf(known)}.`
}

/**
 * The message for a task whose tools no connected instance has.
 * @param wanted the names of the task's tools
 * @param offers the connected instances, with the names of their tools
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
