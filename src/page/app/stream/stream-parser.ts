/** Server-Sent Events out of the text of a response. `EventSource` sends no token. */
import { createParser } from 'eventsource-parser'

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
  let lastId = ''
  return createParser({
    onEvent: ({ id, event = 'message', data }) => {
      lastId = id ?? lastId
      onEvent({ id: lastId, event, data })
    },
  })
}
