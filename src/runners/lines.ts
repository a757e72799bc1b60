/** Cuts a stream of text into lines. */

/** How much of a line that has not ended is kept, in UTF-16 units; the rest of such a line is dropped. */
const MAX_LINE_CHARS = 65_536

/** Takes text in pieces. */
export interface LineSplitter {
  push(text: string): void
  /** The text is over: what came after the last line break is a line too. */
  end(): void
}

/** @param onLine called with each line, without its line break (`\n` or `\r\n`) */
export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  let partial = ''
  const tell = (line: string): void => onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  return {
    push: (text) => {
      const lines = (partial + text).split('\n')
      partial = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS)
      lines.forEach(tell)
    },
    end: () => {
      const rest = partial
      partial = ''
      if (rest !== '') tell(rest)
    },
  }
}
