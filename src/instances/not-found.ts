/** The error for an unknown instance id. */

/** The number of other ids in the error, and the characters of each. */
const MAX_NAMED = 10
const MAX_CHARS = 64

/** @param known the ids of the registered instances */
export function instanceNotFound(instanceId: string, known: readonly string[]): string {
  return `Instance not found: ${instanceId}. ${whatExists(known)}`
}

function whatExists(known: readonly string[]): string {
  if (known.length === 0) return 'There is no instance.'
  const named = known.slice(0, MAX_NAMED).map((id) => (id.length <= MAX_CHARS ? id : `${id.slice(0, MAX_CHARS)}…`))
  const more = known.length > MAX_NAMED ? `, and ${known.length - MAX_NAMED} more` : ''
  return `Known instances: ${named.join(', ')}${more}.`
}
