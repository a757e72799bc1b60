/** Uses the page in Chromium without a mouse: finds out what has the focus, and moves it. */
import type { Page } from 'playwright-core'

/** The role and the name of the focused element, nearly as a screen reader says them. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const { ariaLabel, labels, textContent, role, localName } = document.activeElement
    return (role ?? localName) + ' ' + (ariaLabel ?? labels?.[0]?.textContent ?? textContent).trim()
  })()`)

/** The text of the row that is selected in a list or a tree. */
export const activeRow = (page: Page): Promise<string | null> =>
  page.evaluate(`(() => {
    const id = document.activeElement.getAttribute('aria-activedescendant')
    return id === null ? null : document.getElementById(id)?.getAttribute('aria-label') ?? null
  })()`)

/** Presses Tab until the wanted element has the focus. */
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
