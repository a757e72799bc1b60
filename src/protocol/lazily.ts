/**
 * Schemas are made when the first value is checked: to make those of the core took a third of the time that its import took beyond its
 * dependencies.
 */

/** Makes a value when it is first asked for, once. */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
