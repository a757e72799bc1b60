/** Short ids: a prefix that identifies its task. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MIN_SHORT_ID, shortIds } from '../../src/features/task-ids/short-ids.js'

// Ids that share long prefixes, some of them a prefix of another.
const part = fc.constantFrom('research', 'er-a', 'b', '1', '😀', '\u{1F600}x', '-')
const ids = fc.uniqueArray(
  fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('')),
  { maxLength: 12 },
)

export const shortIdsProperty = () =>
  fc.property(ids, (all) => {
    const short = shortIds(all)
    assert.deepStrictEqual([...short.keys()].sort(), [...all].sort())
    for (const id of all) {
      const shown = short.get(id)!
      const matches = all.filter((other) => other.startsWith(shown))
      assert.ok(id.startsWith(shown), `${shown} is no prefix of ${id}`)
      // An exact id takes precedence over a longer one that starts with it.
      assert.deepStrictEqual(shown === id ? [id] : matches, [id], `${shown} is ambiguous`)
      assert.ok(shown === id || shown.length >= MIN_SHORT_ID, `${shown} is too short`)
      assert.ok(!/[\uD800-\uDBFF]$/.test(shown), `${shown} splits a character`)
      assert.ok(isNoLongerThanNeeded(id, shown, all), `${shown} is longer than it must be`)
    }
  })

/** One character less would be too short, ambiguous, or split a character. */
function isNoLongerThanNeeded(id: string, shown: string, all: readonly string[]): boolean {
  const less = shown.slice(0, -1)
  if (less.length < MIN_SHORT_ID || /[\uD800-\uDBFF]$/.test(less)) return true
  return all.some((other) => other !== id && other.startsWith(less))
}
