/** `fetch` and `WebSocket` of the platform. Browsers and Node 22 have both; Node 20 has no WebSocket. */

/** The part of a WebSocket that the client uses. The platform's class fits, and the one of the package `ws`. */
export interface SocketLike {
  /** Called when the socket is open. */
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  /** Called when the socket is closed. */
  onclose: ((event: never) => void) | null
  /** Called when the socket fails. `onclose` is called after it. */
  onerror: ((event: never) => void) | null
  /** The bytes that were sent and have not left this process. */
  readonly bufferedAmount?: number
  send(data: string): void
  close(code?: number, reason?: string): void
}

/** A WebSocket class. */
export type SocketConstructor = new (url: string) => SocketLike

/** The part of `fetch` that the client uses. */
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

/** Returns the given class, or the platform's, or the one of `ws`, which is imported only when it is needed. */
export async function findSocketConstructor(given: SocketConstructor | undefined): Promise<SocketConstructor> {
  const found = given ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  return found ?? (await import('ws')).WebSocket
}

/** Returns the given function, or one that looks up the platform's `fetch` at each call, so that a replaced `fetch` is used. */
export function findFetch(given: FetchLike | undefined): FetchLike {
  return given ?? ((url, init) => globalThis.fetch(url, init))
}
