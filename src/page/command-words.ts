/** The words of a program's command, as far as they are shown. */
import { cutText } from '../text/cut-text.js'

/** The most words, and the most characters of all. */
const MAX_WORDS = 1000
const MAX_CHARS = 20_000

/** Whether not all of it is shown. */
export function isLongCommand(command: readonly string[]): boolean {
  let chars = 0
  return command.length > MAX_WORDS || command.some((word) => (chars += word.length) > MAX_CHARS)
}

/** The words, or the first of them and a mark: with that they are still too long. */
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
