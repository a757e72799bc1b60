/** Returns an object like `target` with some methods or properties replaced. The others are those of `target`. */
export function overriding<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key) => {
      if (Object.hasOwn(replaced, key)) return Reflect.get(replaced, key) as unknown
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
