/** Fences: no text closes its own, and a long text costs no more than its length. */
import { describe, expect, it } from 'vitest'
import { fenced } from '../../../src/data/fenced.js'

const fenceOf = (text: string): string => fenced('title', text).split('\n')[1] ?? ''

describe('a fence', () => {
  it.each(['```', '  ````', '\t`````', '\u00a0```'])('is longer than that of a line that begins with %j', (line) => {
    expect(fenceOf(`before\n${line}\nafter`)).toBe('`'.repeat(line.trimStart().length + 1))
  })

  // The square of these lengths would take minutes.
  it('is found in a million line breaks, and in half a million runs of backticks', () => {
    expect(fenceOf('\n'.repeat(1_000_000))).toBe('```')
    expect(fenceOf(' '.repeat(1_000_000))).toBe('```')
    expect(fenceOf('``` x '.repeat(500_000))).toBe('````')
  })
})
