/** Server-Sent Events out of the text of a response (WHATWG HTML, "9.2.6 Interpreting an event stream"). `EventSource` sends no token. */

export interface StreamEvent {
  /** The last id that the stream has named. */
  readonly id: string
  readonly event: string
  readonly data: string
}

export interface StreamParser {
  /** Takes the next piece of the text, wherever it is cut. */
  feed(text: string): void
}

export function createStreamParser(onEvent: (event: StreamEvent) => void): StreamParser {
  let rest = ''
  let isFirst = true
  let endedWithCr = false
  let id = ''
  let event = ''
  let data: string[] = []

  const dispatch = (): void => {
    if (data.length > 0) onEvent({ id, event: event === '' ? 'message' : event, data: data.join('\n') })
    event = ''
    data = []
  }

  const onLine = (line: string): void => {
    if (line === '') {
      dispatch()
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') data.push(value)
    else if (field === 'event') event = value
    else if (field === 'id' && !value.includes('\0')) id = value
  }

  return {
    feed: (text) => {
      if (text === '') return
      let piece = text
      if (isFirst) piece = piece.replace(/^\uFEFF/, '')
      isFirst = false
      // The line feed of a CR LF that was cut in two.
      if (endedWithCr && piece.startsWith('\n')) piece = piece.slice(1)
      endedWithCr = text.endsWith('\r')
      const lines = piece.split(/\r\n|\r|\n/)
      lines[0] = rest + (lines[0] ?? '')
      rest = lines.pop() ?? ''
      for (const line of lines) onLine(line)
    },
  }
}
