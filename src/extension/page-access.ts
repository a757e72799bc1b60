/** The pages that commands may use. */
import { BrowserError } from './debuggee.js'

/** `about:blank` exactly: Chromium 156 ends in a failed CHECK when an extension takes a new tab to `about:blank#x`. */
const ALLOWED = /^(?:https?:|data:|blob:(?:https?:|null\/)|about:blank$|about:srcdoc$|$)/

/** Why commands may not use a page with this address; undefined if they may. */
export function refusalOf(url: string): BrowserError | undefined {
  if (isOfWebStore(url)) return refused('The Chrome Web Store')
  if (ALLOWED.test(url)) return undefined
  const scheme = /^[a-z][\w+.-]*:/i.exec(url)?.[0] ?? url.slice(0, 40)
  return refused(`A page with an address of ${scheme}`)
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
    `Commands may not use ${page}. Use a tab with an http: or https: page, or open one.`,
  )
