/** Parses the beginning of a JSON text. Objects, arrays and strings that are not closed are closed at the end of the text. */
import { parsed } from './json-values.js'

/** @returns undefined if the text is empty or not JSON */
export function beginningOfJson(text: string): { readonly value: unknown } | undefined {
  return parsed(text) ?? parsed(closed(text))
}

const WORD = /[-+.\w]+/y

/** Returns the text up to the last complete value or string character, followed by the missing closing characters. */
function closed(text: string): string {
  const closers: string[] = []
  let end = 0
  let before = ''
  for (let at = 0; at < text.length;) {
    const sign = text[at] ?? ''
    if (sign === '"') {
      const isKey = closers.at(-1) === '}' && before !== ':'
      const { end: after, isWhole } = endOfText(text, at + 1)
      if (!isKey && !isWhole) return `${text.slice(0, after)}"${closers.reverse().join('')}`
      if (!isWhole) break
      if (!isKey) end = after
      at = after
    } else if (sign === '{' || sign === '[') {
      closers.push(sign === '{' ? '}' : ']')
      end = at += 1
    } else if (sign === '}' || sign === ']') {
      closers.pop()
      end = at += 1
    } else {
      WORD.lastIndex = at
      const word = WORD.exec(text)?.[0] ?? ''
      at += Math.max(1, word.length)
      // The last word, such as a number, may be cut.
      if (word !== '' && at < text.length) end = at
    }
    if (sign.trim() !== '') before = sign
  }
  return text.slice(0, end) + closers.reverse().join('')
}

/** Returns the index after a string. If the string is not closed, returns the index after its last complete character or escape. */
function endOfText(text: string, from: number): { readonly end: number; readonly isWhole: boolean } {
  let at = from
  while (at < text.length) {
    const sign = text[at]
    if (sign === '"') return { end: at + 1, isWhole: true }
    const length = sign !== '\\' ? 1 : text[at + 1] === 'u' ? 6 : 2
    if (at + length > text.length) break
    at += length
  }
  return { end: at, isWhole: false }
}
