/** What the actions of both models have in common: counting back in lists, records with optional fields, and answers. */
import fc from 'fast-check'

/** A position in a list, counted back from the last item and around. */
export type Nth = number

/** Mostly the last item. */
export const nth: fc.Arbitrary<Nth> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat(5) },
)

/** The `nth` item counted back from the last one and around; undefined for an empty list. */
export function nthLast<T>(list: readonly T[], nth: Nth): T | undefined {
  return list[list.length - 1 - (nth % list.length)]
}

/** As `fc.record`, without the fields whose value is undefined. */
export function record<T>(shape: { [K in keyof T]: fc.Arbitrary<T[K] | undefined> }): fc.Arbitrary<T> {
  return fc
    .record(shape as Record<string, fc.Arbitrary<unknown>>)
    .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T)
}

/** What an action returned, or the error it threw. */
export type Answer = { readonly returned: unknown } | { readonly threw: string }
