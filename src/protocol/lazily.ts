/** Schemas are created on first use. Creating all of them at once made the import of the core a third slower. */

/** Creates a value on first use. */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
