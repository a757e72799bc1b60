/** Shortens texts to a maximum length. The shortened text says how much was cut. */
import { cutText } from '../../data/cut-text.js'
import { integerFrom, withDefault } from '../../protocol/option-checks.js'
import { callText, type FollowUpCall } from './follow-ups.js'

/** The default maximum length of a text about one task, and of a whole message, in characters. */
export const DEFAULT_MESSAGE_CHARS = 20_000

/** The type of the option `maxMessageChars`. */
export const messageLength = withDefault(integerFrom(200), DEFAULT_MESSAGE_CHARS)

/** The reserve for the notice about cut text, in characters. The call that reads the rest is added to it. */
const NOTICE_CHARS = 120

/**
 * Returns the maximum length of a message, a tool's result or a list, in characters: 20000, or `maxChars` if that is more.
 * @param maxChars the maximum length of the text about one task
 */
export function maxWholeChars(maxChars: number): number {
  return Math.max(maxChars, DEFAULT_MESSAGE_CHARS)
}

export interface BoundedText {
  readonly text: string
  readonly isCut: boolean
}

/**
 * Returns the first `maxChars` characters of a text, and a notice that says how to read the rest.
 * @param reading the call that reads the text; the notice adds the cursor to it
 * @param room the maximum length of the text with its notice
 */
export function boundText(
  text: string,
  maxChars: number,
  reading: FollowUpCall,
  room = maxWholeChars(maxChars),
): BoundedText {
  if (text.length <= Math.min(maxChars, room)) return { text, isCut: false }
  const notices = NOTICE_CHARS + callText(reading).length
  const kept = cutText(text, Math.max(0, Math.min(maxChars, room - notices)))
  const next = callText(reading, { cursor: new TextEncoder().encode(kept).length })
  const notice = `[Cut after ${kept.length} of ${text.length} characters. Read the rest with ${next}]`
  return { text: `${kept}\n${notice}`, isCut: true }
}

/** Cuts a text like `cutText`, and appends `...` if anything was cut. */
export function previewText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${cutText(text, maxChars)}...`
}

/**
 * Returns as many lines as fit into `maxChars` characters, but at least one, and the number of lines that were left out.
 * @param howToRead returns how to read the rest, in words, given the number of shown lines
 */
export function boundLines(
  lines: readonly string[],
  maxChars: number,
  howToRead: (shown: number) => string = () => '',
): string {
  let length = 0
  const fitting = lines.findIndex((line, index) => (length += line.length + 1) > maxChars && index > 0)
  return fitting === -1
    ? lines.join('\n')
    : [...lines.slice(0, fitting), `... and ${lines.length - fitting} more${howToRead(fitting)}`].join('\n')
}
