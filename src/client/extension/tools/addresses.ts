/** Completes and checks addresses. Has no side effects. */
import { BrowserError, type Tabs } from '../debuggee.js'

/**
 * Completes an address that has no scheme: with `http://` on this machine, with `https://` elsewhere.
 * @throws BrowserError `INVALID_ARGUMENTS` for a text that is not an address
 * @throws BrowserError `PAGE_NOT_ALLOWED` for a page that commands may not use
 */
export function addressOf(url: string, tabs: Pick<Tabs, 'refusal'>): string {
  const text = url.trim()
  const isLocal = /^(localhost|127\.|\[::1\])/i.test(text)
  const hasScheme = /^([a-z][a-z0-9+.-]*:\/\/|(about|blob|data|javascript|chrome|view-source):)/i.test(text)
  const address = hasScheme ? text : `${isLocal ? 'http' : 'https'}://${text}`
  if (!URL.canParse(address)) {
    throw new BrowserError(
      'INVALID_ARGUMENTS',
      `arguments.url: got ${JSON.stringify(text.slice(0, 200))}, expected an address.`,
    )
  }
  if (/^javascript:/i.test(address)) {
    throw new BrowserError(
      'PAGE_NOT_ALLOWED',
      'arguments.url: got a javascript: address, expected the address of a page. Run a script with browser_evaluate.',
    )
  }
  const refusal = tabs.refusal(new URL(address).href)
  if (refusal !== undefined) throw refusal
  return address
}
