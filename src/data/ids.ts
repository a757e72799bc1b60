/** Creates ids that are not in use. */
import { AgentTasksError } from '../errors.js'

/** After so many ids in a row that are in use, `createId` counts as faulty. */
const MAX_ATTEMPTS = 100

/**
 * Returns an id from `createId` that is not in use.
 * @throws AgentTasksError `ID_REPEATS` if `createId` has returned 100 ids that are in use
 */
export function freshId(
  createId: (prefix: string) => string,
  prefix: string,
  isTaken: (id: string) => boolean,
): string {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const id = createId(prefix)
    if (!isTaken(id)) return id
  }
  throw new AgentTasksError(
    'ID_REPEATS',
    `createId(${JSON.stringify(prefix)}) returned ${MAX_ATTEMPTS} ids that are all in use. It must return a new id at each call.`,
  )
}

/** Returns `<prefix>-<16 random hexadecimal digits>`. */
export function randomId(prefix: string): string {
  const uuid = globalThis.crypto.randomUUID()
  return `${prefix}-${uuid.slice(0, 8)}${uuid.slice(9, 13)}${uuid.slice(14, 18)}`
}
