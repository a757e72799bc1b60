/**
 * What a terminal shows of the output of a program: without escape sequences, and with the last state of what the program has redrawn, such as a progress
 * bar. A terminal with a grid of cells would break long lines and drop old ones. Here lines have any length, and all of them stay.
 */
import { ESCAPE_SEQUENCE } from './control-characters.js'

/** The highest column to which a sequence moves the cursor, except back within a line. */
const MAX_COLUMNS = 500

/** The highest row that an absolute position may name. */
const MAX_ROWS = 500

/** What has an effect besides text. A carriage return before a line feed has none. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /\r(?!\n)|[\b\u001b\u0080-\u009f]/

// A text may end within a sequence. The groups: a sequence, a line feed, a movement within the line, text. Other control characters have no effect.
const TOKENS = new RegExp(
  `(${ESCAPE_SEQUENCE.source})|\\u001b\\[?[\\d;?]*$|\\r*(\\n)|([\\r\\b])|([^\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f]+)`,
  'g',
)

/** Returns a text as a terminal shows it. A text without escape sequences, carriage returns and backspaces is returned unchanged. */
export function terminalText(text: string): string {
  if (!CONTROLS.test(text)) return text
  const screen = new Screen()
  for (const [, sequence, lineFeed, movement, written] of text.matchAll(TOKENS)) {
    if (written !== undefined) screen.write(written)
    else if (lineFeed !== undefined) screen.newLine()
    else if (movement === '\r') screen.moveTo(screen.row, 0)
    else if (movement === '\b') screen.moveTo(screen.row, screen.column - 1)
    else if (sequence !== undefined) obey(screen, sequence)
  }
  return screen.toString()
}

// eslint-disable-next-line no-control-regex
const SEQUENCE = /^(?:\u001b\[?|\u009b)(\d{0,4})(?:;(\d{0,4}))?[^A-Za-z]*([A-Za-z]?)$/

/** Moves the cursor, or erases. Other sequences, such as colours and titles, do not change the text. */
function obey(screen: Screen, sequence: string): void {
  const [, first = '', second = '', final = ''] = SEQUENCE.exec(sequence) ?? []
  const { row, column } = screen
  const count = Math.max(1, Number(first))
  const moves: Readonly<Record<string, readonly [row: number, column: number]>> = {
    A: [row - count, column],
    B: [row + count, column],
    C: [row, column + count],
    D: [row, column - count],
    E: [row + count, 0],
    F: [row - count, 0],
    G: [row, count - 1],
  }
  const move = moves[final]
  if (move !== undefined) screen.moveTo(...move)
  else if (final === 'H' || final === 'f') screen.place(count - 1, Math.max(1, Number(second)) - 1)
  else if (final === 'K') screen.eraseLine(Number(first))
  else if (final === 'J' && Number(first) === 0) screen.eraseBelow()
  else if (final === 'J' && Number(first) > 1) screen.clear()
  else if (final === 's' || sequence === '\u001b7') screen.saved = [row, column]
  else if (final === 'u' || sequence === '\u001b8') screen.moveTo(...screen.saved)
}

/** Lines of any length, and a cursor. Each operation takes constant time on average, because hostile output may have millions of them. */
class Screen {
  /** A line to which the cursor has returned is a list of characters. */
  readonly #lines: (string | string[])[] = [[]]
  row = 0
  column = 0
  saved: readonly [row: number, column: number] = [0, 0]

  /** Moves the cursor to a line that exists. */
  moveTo(row: number, column: number): void {
    this.row = Math.min(Math.max(row, 0), this.#lines.length - 1)
    this.column = Math.max(0, Math.min(column, Math.max(MAX_COLUMNS, this.column)))
  }

  /** Moves the cursor to any line. */
  place(row: number, column: number): void {
    while (this.#lines.length <= Math.min(row, MAX_ROWS)) this.#lines.push('')
    this.moveTo(row, column)
  }

  newLine(): void {
    if (this.row === this.#lines.length - 1) {
      this.#lines[this.row] = this.#cells().join('')
      this.#lines.push([])
    }
    this.moveTo(this.row + 1, 0)
  }

  write(text: string): void {
    const cells = this.#cells()
    while (cells.length < this.column) cells.push(' ')
    for (const character of text) {
      // A mark has no column of its own.
      const before = this.column > 0 && MARK.test(character) ? cells[this.column - 1] : undefined
      if (before === undefined) cells[this.column++] = character
      else cells[this.column - 1] = before + character
    }
  }

  /** @param part 0: from the cursor on; 1: up to the cursor; 2: all of it */
  eraseLine(part: number): void {
    const cells = this.#cells()
    if (part === 1) cells.fill(' ', 0, Math.min(this.column, MAX_COLUMNS) + 1)
    else cells.length = part === 2 ? 0 : Math.min(cells.length, this.column)
  }

  eraseBelow(): void {
    this.eraseLine(0)
    this.#lines.length = this.row + 1
  }

  clear(): void {
    this.#lines.splice(0, this.#lines.length, [])
    this.moveTo(0, 0)
  }

  toString(): string {
    return this.#lines.map((line) => (typeof line === 'string' ? line : line.join('')).trimEnd()).join('\n')
  }

  /** The characters of the line of the cursor, to change them. */
  #cells(): string[] {
    const line = this.#lines[this.row] ?? []
    if (typeof line !== 'string') return line
    return (this.#lines[this.row] = Array.from(line))
  }
}

const MARK = /[\p{M}\u200d]/u
