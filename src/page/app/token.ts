/**
 * The token of the printed link. It is kept in this tab, rather than in the address, which is shared and stored, in cookies, which are sent to every
 * port, or in `localStorage`, which the next program on this port could read.
 */
import { readAddress, tokenOf, withParameter } from './addresses.js'
import { replaceAddress } from './current-address.js'

const KEPT_AS = 'agent-tasks-token'

/** Keeps the token of the address and removes it there. Returns undefined if the address has none. */
export function takeToken(): string | undefined {
  const given = tokenOf(location.hash)
  if (given === undefined) return undefined
  keepToken(given)
  replaceAddress(withParameter(readAddress(location.hash), 'token', undefined))
  return given
}

/** The token that this tab keeps. */
export function keptToken(): string | undefined {
  return sessionStorage.getItem(KEPT_AS) ?? undefined
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEPT_AS, token)
}

/**
 * Shares the token with new tabs of the page. Only scripts of the same host and port can ask, and only a tab that its server accepts answers, so
 * another program that uses the port later receives nothing.
 * @param current the token, if the server accepts it
 * @param onToken called with the answer of another tab
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

/** Extracts the token from pasted text, which may be the token or the whole link. */
export function pastedToken(text: string): string {
  const trimmed = text.trim()
  const hash = trimmed.indexOf('#')
  return (hash < 0 ? undefined : tokenOf(trimmed.slice(hash))) ?? trimmed
}
