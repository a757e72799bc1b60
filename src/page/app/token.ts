/**
 * Stores the token of the link that the server prints. The token is in the `sessionStorage` of this tab. It is not in the address, because people share
 * addresses and browsers store them. It is not in a cookie, because browsers send cookies to every port of a host. It is not in `localStorage`, because
 * another program that uses this port later could read it there.
 */
import { readAddress, tokenOf, withParameter } from './addresses.js'
import { replaceAddress } from './current-address.js'

const KEPT_AS = 'agent-tasks-token'

/** Moves the token from the address into this tab's storage. Returns undefined if the address has no token. */
export function takeToken(): string | undefined {
  const given = tokenOf(location.hash)
  if (given === undefined) return undefined
  keepToken(given)
  replaceAddress(withParameter(readAddress(location.hash), 'token', undefined))
  return given
}

export function keptToken(): string | undefined {
  return sessionStorage.getItem(KEPT_AS) ?? undefined
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEPT_AS, token)
}

/**
 * Shares the token with new tabs of the page. Only scripts from the same host and port can ask for it. A tab answers only while its server accepts the
 * token, so a program that uses the port later gets no answer.
 * @param current returns the token if the server accepts it
 * @param onToken called with a token that another tab has sent
 * @returns a function that asks the other tabs
 */
export function shareToken(current: () => string | undefined, onToken: (token: string) => void): () => void {
  const channel = new BroadcastChannel(KEPT_AS)
  channel.onmessage = ({ data }: MessageEvent<{ readonly token?: string }>) => {
    if (data.token !== undefined) {
      onToken(data.token)
      return
    }
    const token = current()
    if (token !== undefined) channel.postMessage({ token })
  }
  return () => channel.postMessage({})
}

/** Extracts the token from pasted text, which is the token or a whole link. */
export function pastedToken(text: string): string {
  const trimmed = text.trim()
  const hash = trimmed.indexOf('#')
  return (hash < 0 ? undefined : tokenOf(trimmed.slice(hash))) ?? trimmed
}
