/** The displayed part of a command line. */
import { cutText } from '../text/cut-text.js'

/** The maximum of words, and of characters in total. */
const MAX_WORDS = 1000
const MAX_CHARS = 20_000

/** Whether only a part is displayed. */
export function isLongCommand(command: readonly string[]): boolean {
  let chars = 0
  return command.length > MAX_WORDS || command.some((word) => (chars += word.length) > MAX_CHARS)
}

/** Returns the words, or the first of them with a mark that makes them exceed the limit, so that they still count as too long. */
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
