/** Cuts a long command line to the part that the page shows. */
import { cutText } from '../data/cut-text.js'

/** The maximum number of words, and of characters in all words together. */
const MAX_WORDS = 1000
const MAX_CHARS = 20_000

/** Whether the page shows only the beginning of the command line. */
export function isLongCommand(command: readonly string[]): boolean {
  let chars = 0
  return command.length > MAX_WORDS || command.some((word) => (chars += word.length) > MAX_CHARS)
}

/** Returns all words, or the first words and `…`. The added `…` exceeds a limit again, so `isLongCommand` is also true for the cut words. */
export function shownWords(command: readonly string[]): readonly string[] {
  if (!isLongCommand(command)) return command
  const shown: string[] = []
  let room = MAX_CHARS
  for (const word of command.slice(0, MAX_WORDS)) {
    if (room <= 0) break
    shown.push(cutText(word, room))
    room -= word.length
  }
  return [...shown, '…']
}
