/** Texts of limited length that say how much of them was cut. */
import { InvalidSettingError } from '../errors.js'
import { integerFrom } from '../protocol/option-checks.js'

/** The default maximum length of a text about one task, in characters. */
const DEFAULT_MESSAGE_CHARS = 20_000

/** The type of the option `maxMessageChars`. */
export const messageLength = integerFrom(200)

/** The setting `maxMessageChars`, checked. Throws `InvalidSettingError` when it is not an integer >= 200. */
export function checkMaxMessageChars(maxChars: number = DEFAULT_MESSAGE_CHARS): number {
  if (!messageLength.accepts(maxChars)) {
    throw new InvalidSettingError('maxMessageChars', maxChars, messageLength.expected)
  }
  return maxChars
}

/** A text for the model, and whether it was cut. */
export interface BoundedText {
  readonly text: string
  readonly isCut: boolean
}

/**
 * The first `maxChars` characters of a text, and a notice that says how to read the rest.
 * @param reading the parameters of check_async_tasks that read the text; the notice adds the cursor
 */
export function boundText(text: string, maxChars: number, reading: Readonly<Record<string, unknown>>): BoundedText {
  if (text.length <= maxChars) return { text, isCut: false }
  const kept = cutText(text, maxChars)
  const next = JSON.stringify({ ...reading, cursor: new TextEncoder().encode(kept).length })
  const notice = `[Cut after ${kept.length} of ${text.length} characters. Read the rest with check_async_tasks ${next}]`
  return { text: `${kept}\n${notice}`, isCut: true }
}

/** The first `maxChars` UTF-16 units of a text, or one less where that would split a surrogate pair. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, '')
}

/** The same as `cutText`, followed by `...` if the text was cut. */
export function previewText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${cutText(text, maxChars)}...`
}

/** The lines that fit into `maxChars` characters, at least one, and the number of those that do not. */
export function boundLines(lines: readonly string[], maxChars: number): string {
  let length = 0
  const fitting = lines.findIndex((line, index) => (length += line.length + 1) > maxChars && index > 0)
  return fitting === -1
    ? lines.join('\n')
    : [...lines.slice(0, fitting), `... and ${lines.length - fitting} more`].join('\n')
}
