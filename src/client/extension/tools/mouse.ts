/** The mouse of a tab. */
import type { Point } from './frame-points.js'
import { guardMouse } from './input-guard.js'
import { MODIFIER_BITS, type Modifier } from './keys.js'
import type { Page } from './page.js'

export interface ClickOptions {
  readonly button: 'left' | 'right' | 'middle'
  readonly count: 1 | 2
  readonly modifiers: readonly Modifier[]
}

export async function movePointer(page: Page, at: Point, signal: AbortSignal, modifiers = 0): Promise<void> {
  await guardMouse(page, at, signal)
  await page.debuggee.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: at.x, y: at.y, modifiers }, { signal })
}

export async function clickAt(page: Page, at: Point, options: ClickOptions, signal: AbortSignal): Promise<void> {
  const modifiers = options.modifiers.reduce((bits, name) => bits | MODIFIER_BITS[name], 0)
  const { button, count } = options
  await movePointer(page, at, signal, modifiers)
  for (let clickCount = 1; clickCount <= count; clickCount += 1) {
    await guardMouse(page, at, signal)
    const event = { x: at.x, y: at.y, button, clickCount, modifiers }
    await page.debuggee.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...event }, { signal })
    await page.debuggee.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...event }, { signal })
  }
}
