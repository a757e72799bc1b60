/** Puts the text of a program or run between fences of backticks that the text itself cannot close. */

/**
 * Backticks in the middle of a line cannot close a fence, but may confuse a model. So the fence is made longer than these as well, but only up to
 * this number of backticks.
 */
const MAX_INLINE = 20

/**
 * Returns the text between two fences, below a title line.
 * @param title what the text is, in words
 */
export function fenced(title: string, text: string, language = ''): string {
  const fence = fenceFor(text)
  return `${title}\n${fence}${language}\n${text}\n${fence}`
}

/** The length that a title and two fences add to a text, if no line of the text begins with backticks (such as JSON). */
export const fenceChars = (title: string): number => title.length + 2 * MAX_INLINE + 10

/** Returns a fence that is longer than all backticks in a row at the beginning of a line, because these would close a shorter fence. */
function fenceFor(text: string): string {
  const longest = (pattern: RegExp): number => {
    let chars = 2
    for (const [run] of text.matchAll(pattern)) chars = Math.max(chars, run.trimStart().length)
    return chars
  }
  return '`'.repeat(
    Math.max(longest(/^[^\S\r\n\u2028\u2029]*`{3,}/gm), Math.min(longest(/`{3,}/g), MAX_INLINE - 1)) + 1,
  )
}
