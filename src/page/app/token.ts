/**
 * The token of the printed link. It is kept in this tab, rather than in the address, which is shared and stored, or in cookies, which are sent to
 * every port.
 */
import { tokenOf } from './addresses.js'

const KEPT_AS = 'agent-tasks-token'

/** Takes the token from the address, or else the one kept in this tab. */
export function takeToken(): string | undefined {
  const given = tokenOf(location.hash)
  if (given === undefined) return sessionStorage.getItem(KEPT_AS) ?? undefined
  keepToken(given)
  history.replaceState(null, '', `${location.pathname}${location.search}#/timeline`)
  return given
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEPT_AS, token)
}

/** Extracts the token from pasted text, which may be the token or the whole link. */
export function pastedToken(text: string): string {
  const trimmed = text.trim()
  const hash = trimmed.indexOf('#')
  return (hash < 0 ? undefined : tokenOf(trimmed.slice(hash))) ?? trimmed
}
