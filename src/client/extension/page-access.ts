/** Decides by the address of a page whether commands may use the page. */
import { BrowserError } from './debuggee.js'

/** Only `about:blank` without a fragment: Chromium 156 crashes (a failed CHECK) when an extension navigates a new tab to `about:blank#x`. */
const ALLOWED = /^(?:https?:|data:|blob:(?:https?:|null\/)|about:blank$|about:srcdoc$|$)/

/** Returns why commands may not use a page with this address; undefined if they may. */
export function refusalOf(url: string): BrowserError | undefined {
  if (isOfWebStore(url)) return refused('the Chrome Web Store')
  if (ALLOWED.test(url)) return undefined
  const scheme = /^[a-z][\w+.-]*:/i.exec(url)?.[0] ?? url.slice(0, 40)
  return refused(`a page whose address begins with ${scheme}`)
}

function isOfWebStore(url: string): boolean {
  if (!/^https?:/.test(url) || !URL.canParse(url)) return false
  const { hostname, pathname } = new URL(url)
  const host = hostname.replace(/\.$/, '')
  return host === 'chromewebstore.google.com' || (host === 'chrome.google.com' && /^\/webstore(?:\/|$)/.test(pathname))
}

const refused = (page: string): BrowserError =>
  new BrowserError(
    'PAGE_NOT_ALLOWED',
    `Commands may not use ${page}. Use a tab with an http: or https: page, or open such a page.`,
  )
