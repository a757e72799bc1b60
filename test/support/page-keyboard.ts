/** The page in Chromium without a mouse: what has the focus, and how to get to something else. */
import type { Page } from 'playwright-core'

/** The role and the name of what has the focus, nearly as a screen reader says them. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const { ariaLabel, labels, textContent, role, localName } = document.activeElement
    return (role ?? localName) + ' ' + (ariaLabel ?? labels?.[0]?.textContent ?? textContent).trim()
  })()`)

/** The row that a list or a tree has chosen, in words. */
export const activeRow = (page: Page): Promise<string | null> =>
  page.evaluate(`(() => {
    const id = document.activeElement.getAttribute('aria-activedescendant')
    return id === null ? null : document.getElementById(id)?.getAttribute('aria-label') ?? null
  })()`)

/** Presses Tab until something has the focus. */
export async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const passed: string[] = []
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    const at = await focused(page)
    if (wanted.test(at)) return
    passed.push(at)
  }
  throw new Error(`No ${String(wanted)} among:\n${passed.join('\n')}`)
}
