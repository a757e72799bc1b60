/** Reads Server-Sent Events for tests. */

export interface ServerSentEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface EventReader {
  readonly status: number
  readonly headers: Headers
  /** The next event; undefined when the stream has ended. */
  next(): Promise<ServerSentEvent | undefined>
  /** All events up to the end. */
  rest(): Promise<ServerSentEvent[]>
  /** Aborts the connection. */
  abort(): void
}

export async function openEvents(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
  const controller = new AbortController()
  const response = await fetch(url, { headers, signal: controller.signal })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const next = async (): Promise<ServerSentEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end !== -1) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        const event = parse(block)
        if (event !== undefined) return event
        continue
      }
      const part = await reader?.read()
      if (part === undefined || part.done) return undefined
      text += part.value
    }
  }
  return {
    status: response.status,
    headers: response.headers,
    next,
    rest: async () => {
      const events: ServerSentEvent[] = []
      for (let event = await next(); event !== undefined; event = await next()) events.push(event)
      return events
    },
    abort: () => controller.abort(),
  }
}

/** Undefined for a comment. */
function parse(block: string): ServerSentEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
    if (name !== '') fields.set(name, value)
  }
  const data = fields.get('data')
  if (data === undefined) return undefined
  return {
    id: fields.get('id'),
    event: fields.get('event') ?? 'message',
    data: JSON.parse(data) as Record<string, unknown>,
  }
}
