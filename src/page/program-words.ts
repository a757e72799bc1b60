/** The words of a program that a task has started, as many as a page can show. */
import { beginningOf } from './texts.js'

/** The most of one word, and of all, in UTF-16 units. */
const WORD_CHARS = 2000
const ALL_CHARS = 32 * 1024

export interface ShownWords {
  readonly command: readonly string[]
  /** How many further words there are. */
  readonly omitted?: number
}

/** A word that is cut ends with an ellipsis. */
export function shownWords(words: readonly string[]): ShownWords {
  const command: string[] = []
  let room = ALL_CHARS
  for (const word of words) {
    const shown = word.length > WORD_CHARS ? `${beginningOf(word, WORD_CHARS)}…` : word
    // And the space after it.
    room -= shown.length + 1
    if (room < 0) return { command, omitted: words.length - command.length }
    command.push(shown)
  }
  return { command }
}
