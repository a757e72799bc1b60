import { expect, it } from 'vitest'
import { ownText } from '../../../src/data/own-text.js'

it.each(['', 'a', ' with spaces ', 'a text of some length', 'zwei Größen', '\u{1F600}', '\ud800 alone'])(
  'a copy is the same text: %j',
  (text) => {
    expect(ownText(text)).toBe(text)
  },
)
