/**
 * The page in Chromium. The test that opened the page fails if the page reports an error, breaks its content security policy, or sends a request to
 * another server.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { launchChromium } from './chromium.js'
import { startPageHost, type PageHostOptions } from './page-host.js'

/** What Chromium reports when the server of the page is gone. That is not an error of the page. */
const OF_A_LOST_SERVER = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/
/** What Chromium reports about each answer with an error status. */
const OF_A_REFUSAL = /status of 4\d\d/

export type OpenPage = (url: string, options?: BrowserContextOptions) => Promise<Page>

/** Call it once in a test file. The tests of the file share a browser, and each page has its own profile. */
export function usePageBrowser(): OpenPage {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())
  return async (url, options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    const wrong: string[] = []
    const { origin } = new URL(url)
    page.on('pageerror', (error) => wrong.push(String(error.stack)))
    page.on('console', (message) => {
      const text = message.text()
      const isBad = message.type() === 'error' || message.type() === 'warning'
      if (isBad && !OF_A_LOST_SERVER.test(text) && !OF_A_REFUSAL.test(text)) wrong.push(text)
    })
    page.on('dialog', (dialog) => {
      wrong.push(`a dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('request', (request) => {
      const to = request.url()
      if (!to.startsWith(`${origin}/`) && !to.startsWith('blob:')) wrong.push(`a request to ${to}`)
    })
    onTestFinished(async () => {
      await context.close()
      expect(wrong).toEqual([])
    })
    await page.goto(url)
    return page
  }
}

/** Starts a host, which is closed when the test has finished. */
export async function startHost(options?: PageHostOptions) {
  const host = await startPageHost(options)
  onTestFinished(() => host.close())
  return host
}

/** Waits until the page receives events from its server. */
export async function isLive(page: Page): Promise<void> {
  await page.locator('[data-connection=live]').waitFor()
}

/** Goes to a part of the page by its address. */
export async function goTo(page: Page, address: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
}
