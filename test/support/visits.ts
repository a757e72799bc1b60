/**
 * Counts the elements of arrays, maps and sets that code visits. The count measures work, and is the same on every computer and in every run. It does
 * not count access by index (a heap), or the fields of a copied object.
 */

type Method = (this: unknown, ...args: unknown[]) => unknown

const iteratorPrototypes = [[], new Map(), new Set()].map(
  (each) => Object.getPrototypeOf(each[Symbol.iterator]()) as object,
)

/** The methods that visit every element. */
const walks = [
  ...['concat', 'every', 'filter', 'find', 'findIndex', 'flat', 'flatMap', 'forEach', 'includes', 'indexOf', 'join'],
  ...['map', 'reduce', 'reverse', 'slice', 'some', 'sort', 'splice', 'toSorted', 'unshift'],
]

const counted: readonly { readonly owner: object; readonly name: string; readonly visited: (on: unknown) => number }[] =
  [
    ...iteratorPrototypes.map((owner) => ({ owner, name: 'next', visited: () => 1 })),
    ...walks.map((name) => ({ owner: Array.prototype, name, visited: (on: unknown) => (on as unknown[]).length })),
    { owner: Map.prototype, name: 'forEach', visited: (on) => (on as Map<unknown, unknown>).size },
    { owner: Set.prototype, name: 'forEach', visited: (on) => (on as Set<unknown>).size },
  ]

/** Counts the elements that a synchronous function visits. */
export function countVisits(run: () => void): number {
  let visits = 0
  const originals = counted.map(({ owner, name }) => Reflect.get(owner, name) as Method)
  // From here on only loops by index are used, because the others are counted.
  const replace = (at: number): void => {
    const { owner, name, visited } = counted[at]!
    const original = originals[at]!
    Reflect.set(owner, name, function (this: unknown, ...args: unknown[]): unknown {
      visits += visited(this)
      return Reflect.apply(original, this, args)
    })
  }
  for (let at = 0; at < counted.length; at += 1) replace(at)
  try {
    run()
  } finally {
    for (let at = 0; at < counted.length; at += 1) Reflect.set(counted[at]!.owner, counted[at]!.name, originals[at])
  }
  return visits
}
