/** The token of the printed link. It stays in this tab: out of the address, which is shared and kept, and out of cookies, which any port gets. */
import { tokenOf } from './addresses.js'

const KEPT_AS = 'agent-tasks-token'

/** Takes the token out of the address, or else the one that this tab has kept. */
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

/** The token in what a person has pasted: the token itself, or the whole link. */
export function pastedToken(text: string): string {
  const trimmed = text.trim()
  const hash = trimmed.indexOf('#')
  return (hash < 0 ? undefined : tokenOf(trimmed.slice(hash))) ?? trimmed
}
