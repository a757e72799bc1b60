/** Splits a stream of text into lines. */

/** How much of an unfinished line is kept until its end arrives, in UTF-16 units. What exceeds that is dropped. */
export const MAX_LINE_CHARS = 65_536

export interface LineSplitter {
  push(text: string): void
  /** Passes the text after the last line break to `onLine`, because no more text follows. */
  end(): void
}

/** @param onLine called with each line, without the line break at its end (`\n` or `\r\n`) */
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
