/** Converts a thrown value to text. It may be any value, and reading it may throw. */
import { cutText } from '../text/cut-text.js'
import { preview } from '../text/preview.js'

/** How many nested causes are followed, and how much of each is read, in UTF-16 units. */
const MAX_CAUSES = 5
const MAX_CHARS = 10_000

/** The stacks of an error and of its causes. */
export function causeText(thrown: unknown): string {
  const texts: string[] = []
  let at = thrown
  while (texts.length < MAX_CAUSES && at !== undefined) {
    texts.push(cutText(stackOf(at), MAX_CHARS))
    at = read(at, 'cause')
  }
  return texts.join('\nCaused by: ')
}

function stackOf(thrown: unknown): string {
  const stack = read(thrown, 'stack')
  return typeof stack === 'string' && stack !== '' ? stack : preview(thrown)
}

function read(from: unknown, field: string): unknown {
  if (typeof from !== 'object' || from === null) return undefined
  try {
    return (from as Record<string, unknown>)[field]
  } catch {
    return undefined
  }
}
