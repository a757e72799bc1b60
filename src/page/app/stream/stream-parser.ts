/** Parses Server-Sent Events from the text of a response. `EventSource` is not used, because it cannot send the token. */
import { createParser } from 'eventsource-parser'

export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

export interface StreamParser {
  /** Processes the next piece of text. A piece may end anywhere. */
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
