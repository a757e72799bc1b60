/** A socket to the relay, from the platform: `ws` in Node, where it does not keep the process alive, and the browser's own elsewhere. */
/** The part of a WebSocket that is used here. */
export interface RelaySocket {
  onopen: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  readonly bufferedAmount: number
  send(text: string): void
  close(): void
  /** Ends it without a word, where that is possible. */
  terminate?(): void
}

/** How long the relay may take to answer, in ms. */
const HANDSHAKE_MS = 10_000

/** @throws SyntaxError or what else the platform says of the URL */
export async function openRelaySocket(url: string): Promise<RelaySocket> {
  if (!isNode()) {
    const { WebSocket } = globalThis as unknown as { WebSocket: new (url: string) => RelaySocket }
    return new WebSocket(url)
  }
  const { WebSocket } = await import('ws')
  return new WebSocket(url, {
    handshakeTimeout: HANDSHAKE_MS,
    perMessageDeflate: false,
    finishRequest: (request) => {
      request.once('socket', (socket) => socket.unref())
      request.end()
    },
  })
}

/** Node has a WebSocket of its own from version 22 on, but that one keeps the process alive. */
function isNode(): boolean {
  const { process } = globalThis as { process?: { readonly versions?: { readonly node?: string } } }
  return process?.versions?.node !== undefined
}
