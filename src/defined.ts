type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Removes undefined fields, because an optional field must be absent rather than undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  const present: Defined<T> = {}
  for (const key in fields) {
    if (fields[key] !== undefined) present[key] = fields[key] as Exclude<T[typeof key], undefined>
  }
  return present
}
