/** Text that programs or runs wrote, between fences that it cannot close. */

/** The longest fence that is made only because the text has a run of as many backticks somewhere in a line. */
const MAX_INLINE = 20

/**
 * The text between two fences, under a line that names it.
 * @param title what the text is, in words
 */
export function fenced(title: string, text: string, language = ''): string {
  const fence = fenceFor(text)
  return `${title}\n${fence}${language}\n${text}\n${fence}`
}

/** How much longer a text gets that has no line of backticks, as JSON has none. */
export const fenceChars = (title: string): number => title.length + 2 * MAX_INLINE + 10

/** A fence ends at a line that begins with as many backticks: this one is longer than any in the text. */
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
