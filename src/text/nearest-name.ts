/** Suggests the known name that an unknown one was probably meant to be. */

/**
 * The shortest name that contains `name` or is abbreviated by it (`cmd` for `command`), or else the name with the fewest edits.
 * Undefined when there is no such name, or it needs more edits than 2 and a third of its length.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const written = name.toLowerCase()
  return longerName(written, known) ?? leastEdited(written, known)
}

/** The minimum length of a part that suggests a name, in characters. */
const LEAST_PART = 3

/** How a text may stand for a longer name, the most certain way first. */
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

/** Whether the letters of the short form occur in the name in the same order, with the same first letter. */
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
    // Skips names whose length alone requires too many edits, so that a very long one costs no time.
    if (Math.abs(candidate.length - name.length) > most) continue
    const edits = editsBetween(name, candidate.toLowerCase())
    if (edits <= most && edits < fewest) [nearest, fewest] = [candidate, edits]
  }
  return nearest
}

/** The suggestion for an unknown name: the nearest known one, or else all of them. */
export function expectedName(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `a known name; the nearest is ${nearest}`
  return known.length === 0 ? 'a known name; there are none' : `one of the names ${known.join(', ')}`
}

/** The Levenshtein distance: how many letters to insert, remove or replace. */
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
