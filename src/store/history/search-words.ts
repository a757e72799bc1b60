/** The words by which a past task is found. */

/** The limits of the index of one task: characters of its texts, the number of different words, and characters of one word. */
const SEARCHED = { chars: 50_000, words: 2000, wordChars: 64 } as const

/** Letters that were vowel signs in Unicode 6.1 (of New Tai Lue and Vedic). They separate words, because they do so in an index of SQLite. */
const FORMER_SIGNS = '\\u19b0-\\u19c0\\u19c8\\u19c9\\u1cf2\\u1cf3'

const WORD = new RegExp(`(?:(?![${FORMER_SIGNS}])[\\p{L}\\p{N}])+`, 'gu')

/**
 * Returns the different words of a text: runs of letters and digits. Equivalent spellings of a word become one: upper and lower case, composed and
 * decomposed letters, and both forms of the small sigma.
 */
export function wordsOf(text: string): string[] {
  const words = new Set<string>()
  const folded = text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ')
  for (const [word] of folded.matchAll(WORD)) {
    words.add(word.slice(0, SEARCHED.wordChars))
    if (words.size === SEARCHED.words) break
  }
  return [...words]
}

export function wordsIn(record: unknown): string[] {
  const texts: string[] = []
  let left: number = SEARCHED.chars
  const collect = (value: unknown): void => {
    if (left <= 0) return
    if (typeof value === 'string') {
      texts.push(value.slice(0, left))
      left -= value.length
    } else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect)
  }
  collect(record)
  return wordsOf(texts.join(' '))
}

/** Whether a searched word also finds longer words that begin with it. A beginning of one or two characters would find too many. */
export const isBeginning = (wanted: string): boolean => wanted.length >= 3

/** Whether each wanted word equals one of the words, or is the beginning of one. */
export const haveWords = (words: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every((start) => words.some((word) => (isBeginning(start) ? word.startsWith(start) : word === start)))
