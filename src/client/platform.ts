/** What the client needs of the platform, and where it finds it: browsers bring all of it, Node 20 lacks WebSocket. */

/** The part of a WebSocket that is used here; the platform's and that of `ws` both fit. */
export interface SocketLike {
  /** Called once when it is open. */
  onopen: ((event: never) => void) | null
  /** Called with each frame. */
  onmessage: ((event: never) => void) | null
  /** Called once when it is closed. */
  onclose: ((event: never) => void) | null
  /** Called when something goes wrong with it. */
  onerror: ((event: never) => void) | null
  /** Sends a text frame. */
  send(data: string): void
  /** Closes it. */
  close(code?: number, reason?: string): void
}

/** Opens a socket. */
export type SocketConstructor = new (url: string) => SocketLike

/** The part of `fetch` that is used here. */
export type FetchLike = (
  url: string,
  init?: {
    method?: string
    headers?: Record<string, string>
    body?: string
    signal?: AbortSignal
  },
) => Promise<{ readonly ok: boolean; readonly status: number; text(): Promise<string> }>

/** The given constructor, or the platform's, or that of `ws`, which is loaded only then. */
export async function findSocketConstructor(given: SocketConstructor | undefined): Promise<SocketConstructor> {
  const found = given ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  return found ?? (await import('ws')).WebSocket
}

/** The given function, or the platform's, which is looked up at every call. */
export function findFetch(given: FetchLike | undefined): FetchLike {
  return given ?? ((url, init) => globalThis.fetch(url, init))
}
