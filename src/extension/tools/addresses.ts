/** Completes and checks addresses. Pure. */
import { BrowserError, type Tabs } from '../debuggee.js'

/** Completes an address as people write it. @throws BrowserError `INVALID_ARGUMENTS`, `PAGE_NOT_ALLOWED` */
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
    throw new BrowserError('PAGE_NOT_ALLOWED', 'A script is no address. Use browser_evaluate.')
  }
  const refusal = tabs.refusal(new URL(address).href)
  if (refusal !== undefined) throw refusal
  return address
}
