/** Which pages may be acted in. */
import { BrowserError } from './debuggee.js'

const ALLOWED = /^(?:https?:|data:|blob:|about:blank|about:srcdoc|$)/
const WEB_STORE = /^https?:\/\/(?:chromewebstore\.google\.com|chrome\.google\.com\/webstore)(?:[/?#]|$)/

/** Why nothing may act in a page of this address; undefined if it may. */
export function refusalOf(url: string): BrowserError | undefined {
  if (WEB_STORE.test(url)) return refused('The Chrome Web Store')
  if (ALLOWED.test(url)) return undefined
  const scheme = /^[a-z][\w+.-]*:/i.exec(url)?.[0] ?? url.slice(0, 40)
  return refused(`A page with an address of ${scheme}`)
}

const refused = (page: string): BrowserError =>
  new BrowserError(
    'PAGE_NOT_ALLOWED',
    `${page} may not be acted in. Use a tab with a page of http: or https:, or open another one.`,
  )
