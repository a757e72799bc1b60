type WithoutUndefined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Removes fields that are undefined, because in this package an optional field is absent rather than undefined. */
export function omitUndefined<T extends object>(fields: T): WithoutUndefined<T> {
  const present: WithoutUndefined<T> = {}
  for (const key in fields) {
    if (fields[key] !== undefined) present[key] = fields[key] as Exclude<T[typeof key], undefined>
  }
  return present
}
