/** Puts text of programs or runs between fences that the text cannot close. */

/** The longest fence that is made only because a line contains a run of that many backticks. */
const MAX_INLINE = 20

/**
 * Returns the text between two fences, below a title line.
 * @param title what the text is, in words
 */
export function fenced(title: string, text: string, language = ''): string {
  const fence = fenceFor(text)
  return `${title}\n${fence}${language}\n${text}\n${fence}`
}

/** The added length for a text without a line of backticks, such as JSON. */
export const fenceChars = (title: string): number => title.length + 2 * MAX_INLINE + 10

/** Returns a fence that is longer than any run of backticks at the beginning of a line, because such a run would close it. */
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
