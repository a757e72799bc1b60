/** Writes JSON in pieces, so that the whole text of a large value is never in memory. */
import { partsOf } from './cut-text.js'

/** The maximum length of a slice of a long text, in UTF-16 units. */
const SLICE = 64 * 1024

/** A piece is complete after this many UTF-16 units, or after this many steps. Only the last piece and those next to a long text may be smaller. */
export const PIECE_WORK = 4096

/** An array or object whose text is being written. */
interface Level {
  readonly value: Readonly<Record<string | number, unknown>>
  /** The keys of an object; undefined for an array. */
  readonly keys: readonly string[] | undefined
  readonly length: number
  readonly end: string
  at: number
  separator: string
}

/**
 * Yields the text of `JSON.stringify(value)` in pieces, for plain data (`toPlainData`). The text may be enormous if an object occurs many times in the
 * value. A reader that stops early pays only for the pieces that it has taken.
 */
export function* jsonPieces(value: unknown): Generator<string, void> {
  const levels: Level[] = [{ ...levelOf([value]), end: '' }]
  let [text, steps] = ['', 0]
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (text.length >= PIECE_WORK || steps >= PIECE_WORK) {
      yield text
      text = ''
      steps = 0
    }
    steps += 1
    if (level.at === level.length) {
      text += level.end
      levels.pop()
      continue
    }
    const key = level.keys?.[level.at]
    const item = level.value[key ?? level.at]
    level.at += 1
    if (key !== undefined && item === undefined) continue
    text += level.separator
    level.separator = ','
    if (key !== undefined) {
      if (key.length > SLICE) {
        yield* longText(text, key)
        text = ''
      } else text += JSON.stringify(key)
      text += ':'
    }
    if (typeof item === 'object' && item !== null) {
      const inner = levelOf(item)
      levels.push(inner)
      text += inner.keys === undefined ? '[' : '{'
    } else if (typeof item === 'string' && item.length > SLICE) {
      yield* longText(text, item)
      text = ''
    } else text += JSON.stringify(item ?? null)
  }
  if (text !== '') yield text
}

function levelOf(value: object): Level {
  const keys = Array.isArray(value) ? undefined : keysOf(value)
  const { length } = keys ?? (value as readonly unknown[])
  return { value: value as Level['value'], keys, length, end: keys === undefined ? ']' : '}', at: 0, separator: '' }
}

/** Lists with at most this many keys are not cached. */
const FEW_KEYS = 10_000
const listed = new WeakMap<object, readonly string[]>()

/** Returns the keys of an object of plain data, which never changes. Long lists are cached, because listing a million keys takes half a second. */
export function keysOf(value: object): readonly string[] {
  const known = listed.get(value)
  if (known !== undefined) return known
  const keys = Object.keys(value)
  if (keys.length > FEW_KEYS) listed.set(value, keys)
  return keys
}

function* longText(before: string, text: string): Generator<string, void> {
  yield `${before}"`
  for (const part of partsOf(text, SLICE)) yield JSON.stringify(part).slice(1, -1)
  yield '"'
}

/** Returns the JSON text of a value as a stream. It writes a part only when the reader has taken the part before. */
export function jsonStream(value: unknown): ReadableStream<Uint8Array> {
  const pieces = jsonPieces(value)
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      let text = ''
      while (text.length < SLICE) {
        const { done = false, value: piece } = pieces.next()
        if (done) break
        text += piece ?? ''
      }
      if (text === '') controller.close()
      else controller.enqueue(encoder.encode(text))
    },
  })
}
