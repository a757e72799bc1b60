/** The socket to the relay: from `ws` in Node, so that it does not keep the process alive, and the platform's own in a browser. */

/** The part of a WebSocket that is used here. */
export interface RelaySocket {
  onopen: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  readonly bufferedAmount: number
  send(text: string): void
  close(): void
  /** Closes it without a close frame, where the platform can. */
  terminate?(): void
}

/** The time limit of the handshake, in ms. */
const HANDSHAKE_MS = 10_000

/** @throws what the platform throws for an invalid URL, such as SyntaxError */
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

/** The WebSocket that Node itself has since version 22 keeps the process alive. */
function isNode(): boolean {
  const { process } = globalThis as { process?: { readonly versions?: { readonly node?: string } } }
  return process?.versions?.node !== undefined
}
