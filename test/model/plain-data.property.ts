/** `toPlainData`: frozen copies of any value, and exact copies of JSON data. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { toPlainData } from '../../src/data/plain-data.js'

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
})

const throwing = (reason: unknown) => () => {
  throw reason
}

/** Makes a value that throws when it is read. A function, because fast-check reads the values it draws. */
type Make = () => unknown
const madeOf = (make: (value: unknown) => unknown): fc.Arbitrary<Make> => anything.map((value) => () => make(value))

const hostile: fc.Arbitrary<Make> = fc.oneof(
  madeOf((reason) => Object.defineProperty({}, 'got', { enumerable: true, get: throwing(reason) })),
  madeOf((reason) => ({ toJSON: throwing(reason) })),
  madeOf((value) => ({ toJSON: () => value })),
  madeOf((value) => Object.assign(new Error('odd'), { name: value, message: value, cause: value })),
  madeOf((reason) => new Proxy({}, { ownKeys: throwing(reason), get: throwing(reason), has: throwing(reason) })),
  madeOf((reason) => new Proxy([], { get: throwing(reason), getPrototypeOf: throwing(reason) })),
  madeOf((message) => ({ toJSON: throwing(Object.assign(new Error(), { message })) })),
  fc.constantFrom<Make>(revoked, circular, throwsHostileThings, deep),
  fc
    .constantFrom<unknown>(Symbol('s'), () => undefined, /x/, new WeakMap(), Promise.resolve(), new Date(NaN))
    .map((value) => () => value),
)

const together = (makes: readonly Make[]) => () => makes.map((make) => make())

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return [proxy]
}

function circular(): unknown {
  const self: Record<string, unknown> = {}
  self['self'] = [self, new Map([['self', self]]), new Set([self])]
  return self
}

function throwsHostileThings(): unknown {
  const reason = Object.defineProperty(new Error(), 'message', { get: throwing(new Error('again')) })
  const noPrototype = new Proxy({}, { getPrototypeOf: throwing(reason) })
  return [
    { toJSON: throwing(reason) },
    Object.defineProperty({}, 'x', { enumerable: true, get: throwing(noPrototype) }),
  ]
}

function deep(): unknown {
  let value: unknown = 'bottom'
  for (let depth = 0; depth < 5000; depth += 1) value = depth % 2 === 0 ? [value] : { value }
  return value
}

/** It never throws; the copy is deeply frozen and can be written as JSON. */
export const frozenProperty = () =>
  fc.property(
    fc.oneof(
      madeOf((value) => value),
      hostile,
      fc.array(hostile, { maxLength: 3 }).map(together),
    ),
    (make) => {
      const value = make()
      const copy = toPlainData(value)
      assertFrozen(copy)
      JSON.stringify(copy)
      assert.deepStrictEqual(toPlainData(copy), copy)
    },
  )

/** A copy of JSON data is equal, and is another object. */
export const faithfulProperty = () =>
  fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
    const text = JSON.stringify(value)
    const copy = toPlainData(value)
    assert.deepStrictEqual(copy, value)
    if (typeof value === 'object' && value !== null) {
      assert.notEqual(copy, value)
      Object.assign(value, { added: 'later' })
    }
    assert.equal(JSON.stringify(copy), text)
  })

function assertFrozen(value: unknown): void {
  if (typeof value === 'function') throw new Error('a function is not data')
  if (typeof value !== 'object' || value === null) return
  assert.ok(Object.isFrozen(value), 'not frozen')
  for (const inner of Object.values(value)) assertFrozen(inner)
}
