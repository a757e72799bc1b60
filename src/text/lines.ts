/** Splits a stream of text into lines. */

/** The maximum length of an unfinished line, in UTF-16 units; the rest of it is dropped. */
const MAX_LINE_CHARS = 65_536

/** Splits text that arrives in pieces. */
export interface LineSplitter {
  push(text: string): void
  /** Emits what follows the last line break as a line. */
  end(): void
}

/** @param onLine called with each line, without its line break (`\n` or `\r\n`) */
export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  let partial = ''
  const emit = (line: string): void => onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  return {
    push: (text) => {
      const lines = (partial + text).split('\n')
      partial = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS)
      lines.forEach(emit)
    },
    end: () => {
      const rest = partial
      partial = ''
      if (rest !== '') emit(rest)
    },
  }
}
