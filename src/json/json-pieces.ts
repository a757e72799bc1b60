/** Writes JSON in pieces, so that the text of a large value is never in memory as a whole. */
import { partsOf } from '../text/cut-text.js'

/** The maximum slice of a text that is written at once, in UTF-16 units. */
const SLICE = 64 * 1024

/** The minimum work for a piece: its length in UTF-16 units, or its steps. Only the last piece and those next to a long text may be smaller. */
export const PIECE_WORK = 4096

/** An array or object in progress. */
interface Level {
  readonly value: Readonly<Record<string | number, unknown>>
  /** Of an object. */
  readonly keys: readonly string[] | undefined
  readonly length: number
  readonly end: string
  at: number
  separator: string
}

/**
 * Yields the text of `JSON.stringify(value)` in pieces, for plain data (`toPlainData`). Shared parts may expand to an enormous text, and fields
 * without a JSON form to an empty one. A reader that stops early only pays for the pieces that it took.
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

/** The number of keys up to which the list is not cached. */
const FEW_KEYS = 10_000
const listed = new WeakMap<object, readonly string[]>()

/** The keys of an object of plain data, which does not change. Long lists are cached, because listing a million keys takes half a second. */
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

/** The pieces as a stream. Each one is written after the reader took the previous one. */
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
