/** JSON that does not depend on the order in which the fields of objects were set. */

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the JSON text of a value, with the fields of each object in the order of their names. */
export const orderedJson = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : Number(a > b)))) : part,
  )
