/** `fetch` and `WebSocket` of the platform. Browsers and Node 22 have both; Node 20 has no WebSocket. */

/** The part of a WebSocket that is used here. The platform's class fits, and that of `ws`. */
export interface SocketLike {
  /** Called when it is open. */
  onopen: ((event: never) => void) | null
  /** Called with each frame. */
  onmessage: ((event: never) => void) | null
  /** Called when it is closed. */
  onclose: ((event: never) => void) | null
  /** Called when it fails; a close follows. */
  onerror: ((event: never) => void) | null
  /** Bytes that were sent and have not left this process. */
  readonly bufferedAmount?: number
  /** Sends a text frame. */
  send(data: string): void
  /** Closes it. */
  close(code?: number, reason?: string): void
}

/** A WebSocket class. */
export type SocketConstructor = new (url: string) => SocketLike

/** The part of `fetch` that is used here. */
export type FetchLike = (
  url: string,
  init?: {
    method?: string
    headers?: Record<string, string>
    body?: string
    signal?: AbortSignal
    redirect?: 'error'
  },
) => Promise<{ readonly ok: boolean; readonly status: number; text(): Promise<string> }>

/** The given class, or the platform's, or that of `ws`, which is loaded on demand. */
export async function findSocketConstructor(given: SocketConstructor | undefined): Promise<SocketConstructor> {
  const found = given ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  return found ?? (await import('ws')).WebSocket
}

/** The given function, or the platform's, which is looked up at each call. */
export function findFetch(given: FetchLike | undefined): FetchLike {
  return given ?? ((url, init) => globalThis.fetch(url, init))
}
