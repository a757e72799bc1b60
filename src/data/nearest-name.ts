/** Suggests which known name was probably meant by an unknown name. */

/**
 * Returns the shortest known name that contains `name`, or that `name` abbreviates (`cmd` for `command`). If there is none, returns the known name
 * that needs the fewest edits: at most 2, or a third of its length if that is more, and not all of its letters. A plural (`retries`) stands for its
 * singular, too. Otherwise returns undefined.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const written = name.toLowerCase()
  return longerName(written, known) ?? leastEdited(written, known) ?? leastEdited(written.replace(/ies$/, 'y'), known)
}

/** A part of a name suggests the name only if it has at least this many characters. */
const LEAST_PART = 3

/** The ways in which a text may stand for a longer name. The most certain way comes first. */
const LONGER = [
  (name: string, part: string): boolean => name.startsWith(part),
  (name: string, part: string): boolean => name.includes(part),
  isAbbreviation,
]

function longerName(part: string, known: readonly string[]): string | undefined {
  if (part.length < LEAST_PART) return undefined
  const byLength = [...known].sort((a, b) => a.length - b.length)
  for (const isMeant of LONGER) {
    const found = byLength.find((name) => isMeant(name.toLowerCase(), part))
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether the name contains the letters of `short` in the same order, and begins with the same letter. */
function isAbbreviation(name: string, short: string): boolean {
  if (short.length >= name.length || name[0] !== short[0]) return false
  let found = 0
  for (const letter of name) if (letter === short[found]) found += 1
  return found === short.length
}

function leastEdited(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined
  let fewest = Infinity
  for (const candidate of known) {
    const most = Math.max(2, Math.floor(candidate.length / 3))
    // If the lengths differ by more than `most`, more edits are needed. So a very long name costs no time.
    if (Math.abs(candidate.length - name.length) > most) continue
    const edits = editsBetween(name, candidate.toLowerCase())
    const all = Math.max(name.length, candidate.length)
    if (edits <= most && edits < fewest && edits < all) [nearest, fewest] = [candidate, edits]
  }
  return nearest
}

/** Describes the expected name in an error: the nearest known name, or else all known names. */
export function expectedName(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `a known name; the nearest is ${nearest}`
  return known.length === 0 ? 'a known name; there are none' : `one of the names ${known.join(', ')}`
}

/** Returns the Levenshtein distance: how many letters must be inserted, removed or replaced. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line += 1) {
    const above = row
    row = [line]
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = at(above, column - 1) + (from[line - 1] === to[column - 1] ? 0 : 1)
      row.push(Math.min(replaced, at(above, column) + 1, at(row, column - 1) + 1))
    }
  }
  return at(row, to.length)
}

const at = (row: readonly number[], column: number): number => row[column] ?? Infinity
