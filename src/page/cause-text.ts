/** Converts a thrown value of any type to text. Reading a field of it may throw, because the field may be a getter. */
import { cutText } from '../data/cut-text.js'
import { preview } from '../data/preview.js'

/** The maximum number of stacks in the text, and the maximum length of each stack in UTF-16 units. */
const MAX_CAUSES = 5
const MAX_CHARS = 10_000

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
