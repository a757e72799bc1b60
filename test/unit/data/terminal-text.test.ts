/** Output is shown as a terminal shows it. */
import { describe, expect, it } from 'vitest'
import { terminalText } from '../../../src/data/terminal-text.js'

describe('the text of a terminal', () => {
  it.each([
    ['plain \t text\nof lines\n', 'plain \t text\nof lines\n'],
    ['a\r\nb\r\n', 'a\r\nb\r\n'],
    ['\u001b[1;31mred\u001b[0m x\r\n', 'red x\n'],
    ['\u009b31mred\u001b(B\u001b[m', 'red'],
    ['10%\r20%\r100%\ndone\n', '100%\ndone\n'],
    ['abc\rd', 'dbc'],
    ['abc\r\u001b[Kd', 'd'],
    ['abc\b\bX', 'aXc'],
    ['abcd\u001b[2D\u001b[1Kx', '  xd'],
    ['one\ntwo\nthree\u001b[2A\u001b[2K\rONE\u001b[B\u001b[2K\rTWO\n', 'ONE\nTWO\nthree'],
    ['one\ntwo\nthree\u001b[2F\u001b[Jlast', 'last'],
    ['old\n\u001b[2J\u001b[H\u001b[3;3Hnew', '\n\n  new'],
    ['\u001b7a\u001b8b\u001b[sc\u001b[ud', 'bd'],
    ['\u001b[?25l⠋ wait\r⠙ wait\r\u001b[K✔ done\n\u001b[?25h', '✔ done\n'],
    ['\u001b]8;;https://a.b\u0007link\u001b]8;;\u001b\\ \u001b]0;title\u0007.', 'link .'],
    ['\u001b]0;never closed\nthe next line', '\nthe next line'],
    ['\u001bPdata\u001b\\text', 'text'],
    ['e\u0301x\b.', 'e\u0301.'],
    ['cut \u001b[12', 'cut'],
    ['cut \u001b', 'cut'],
  ])('%j is %j', (given, expected) => {
    expect(terminalText(given)).toBe(expected)
  })

  it.each([
    ['moves', `${'y'.repeat(1000)}\n${'\u001b[Ax\u001b[B'.repeat(200_000)}`],
    ['erasures', 'y'.repeat(100_000) + '\u001b[499G\u001b[1K\r\u001b[K'.repeat(50_000)],
    ['backspaces', 'a\b'.repeat(500_000)],
  ])('takes time in proportion to the output, for hostile %s', (_name, text) => {
    const startedAt = performance.now()
    terminalText(text)
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })
})
