/** The keyboard of a tab. Typed text goes to the focused element. */
import { guardKeyboard } from './input-guard.js'
import { keyOf, MODIFIER_BITS, parseKeys, type Key, type KeyPress } from './keys.js'
import type { Page } from './page.js'

export async function pressKey(page: Page, { modifiers, key }: KeyPress, signal: AbortSignal): Promise<void> {
  await guardKeyboard(page, signal)
  let bits = 0
  for (const name of modifiers) {
    bits |= MODIFIER_BITS[name]
    const held = parseKeys(name, false)
    if (held !== undefined) await send(page, 'keyDown', held.key, bits, signal)
  }
  await send(page, 'keyDown', key, bits, signal)
  await send(page, 'keyUp', key, bits, signal)
  for (const name of [...modifiers].reverse()) {
    bits &= ~MODIFIER_BITS[name]
    const held = parseKeys(name, false)
    if (held !== undefined) await send(page, 'keyUp', held.key, bits, signal)
  }
}

export async function typeKeys(page: Page, text: string, signal: AbortSignal): Promise<void> {
  for (const character of text.replace(/\r\n/g, '\n')) {
    await pressKey(page, { modifiers: [], key: keyOf(character) }, signal)
  }
}

async function send(
  { debuggee }: Page,
  direction: 'keyDown' | 'keyUp',
  { key, code, keyCode, text, location = 0 }: Key,
  modifiers: number,
  signal: AbortSignal,
): Promise<void> {
  // With Control, Alt or Meta, a key is a shortcut and types no text.
  const isTyped = direction === 'keyDown' && text !== undefined && (modifiers & ~MODIFIER_BITS.Shift) === 0
  const type = direction === 'keyUp' ? 'keyUp' : isTyped ? 'keyDown' : 'rawKeyDown'
  await debuggee.send(
    'Input.dispatchKeyEvent',
    {
      type,
      key,
      code,
      windowsVirtualKeyCode: keyCode,
      modifiers,
      location,
      ...(isTyped && { text, unmodifiedText: text }),
    },
    { signal },
  )
}
