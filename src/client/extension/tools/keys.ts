/** The keys of a US keyboard, as the DevTools protocol expects them. */
export const MODIFIER_BITS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 } as const

export type Modifier = keyof typeof MODIFIER_BITS

export interface Key {
  readonly key: string
  readonly code: string
  /** The `windowsVirtualKeyCode`; 0 for a character that no key types. */
  readonly keyCode: number
  readonly text?: string
  readonly location?: number
}

export interface KeyPress {
  readonly modifiers: readonly Modifier[]
  readonly key: Key
}

const named = new Map<string, Key>()
const add = (key: string, keyCode: number, rest: Partial<Key> = {}): void =>
  void named.set(key, { key, code: key, keyCode, ...rest })

add('Backspace', 8)
add('Tab', 9)
add('Enter', 13, { text: '\r' })
add('Shift', 16, { code: 'ShiftLeft', location: 1 })
add('Control', 17, { code: 'ControlLeft', location: 1 })
add('Alt', 18, { code: 'AltLeft', location: 1 })
add('Meta', 91, { code: 'MetaLeft', location: 1 })
add('Pause', 19)
add('CapsLock', 20)
add('Escape', 27)
add('PageUp', 33)
add('PageDown', 34)
add('End', 35)
add('Home', 36)
add('ArrowLeft', 37)
add('ArrowUp', 38)
add('ArrowRight', 39)
add('ArrowDown', 40)
add('PrintScreen', 44)
add('Insert', 45)
add('Delete', 46)
add('ContextMenu', 93)
for (let number = 1; number <= 12; number += 1) add(`F${number}`, 111 + number)

const SHIFTED_DIGITS = ')!@#$%^&*('
const PUNCTUATION: readonly (readonly [plain: string, shifted: string, code: string, keyCode: number])[] = [
  [';', ':', 'Semicolon', 186],
  ['=', '+', 'Equal', 187],
  [',', '<', 'Comma', 188],
  ['-', '_', 'Minus', 189],
  ['.', '>', 'Period', 190],
  ['/', '?', 'Slash', 191],
  ['`', '~', 'Backquote', 192],
  ['[', '{', 'BracketLeft', 219],
  ['\\', '|', 'Backslash', 220],
  [']', '}', 'BracketRight', 221],
  ["'", '"', 'Quote', 222],
  [' ', ' ', 'Space', 32],
]

/** The key of each character (`characters`), and what the key of a character types with Shift (`shifted`). */
const characters = new Map<string, Key>()
const shifted = new Map<string, Key>()
function addCharacters(plain: string, withShift: string, code: string, keyCode: number): void {
  const upper = { key: withShift, code, keyCode, text: withShift }
  if (withShift !== plain) characters.set(withShift, upper)
  characters.set(plain, { key: plain, code, keyCode, text: plain })
  shifted.set(plain, upper)
}
for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
  const upper = letter.toUpperCase()
  addCharacters(letter, upper, `Key${upper}`, upper.charCodeAt(0))
}
for (let digit = 0; digit <= 9; digit += 1) {
  addCharacters(String(digit), SHIFTED_DIGITS.charAt(digit), `Digit${digit}`, 48 + digit)
}
for (const punctuation of PUNCTUATION) addCharacters(...punctuation)

const ALIASES = new Map([
  ['Space', ' '],
  ['Return', 'Enter'],
  ['Esc', 'Escape'],
  ['Del', 'Delete'],
])

/** Returns the key of a character. A character that no key types has only its text. */
export function keyOf(character: string): Key {
  if (character === '\n' || character === '\r') return named.get('Enter') as Key
  if (character === '\t') return named.get('Tab') as Key
  return characters.get(character) ?? { key: character, code: '', keyCode: 0, text: character }
}

/**
 * Parses a key with the modifiers before it: `a`, `Enter`, `Control+Shift+ArrowLeft`, `Control++`.
 * @param isMac whether `ControlOrMeta` is Meta
 * @returns the key; undefined if it does not exist
 */
export function parseKeys(keys: string, isMac: boolean): KeyPress | undefined {
  const parts = keys === '+' ? ['+'] : keys.endsWith('++') ? [...keys.slice(0, -2).split('+'), '+'] : keys.split('+')
  const modifiers = parts.slice(0, -1).map((name) => modifierOf(name, isMac))
  const last = parts.at(-1) ?? ''
  const name = ALIASES.get(last) ?? last
  const key = modifiers.includes('Shift') ? (shifted.get(name) ?? keyNamed(name)) : keyNamed(name)
  if (key === undefined || modifiers.includes(undefined)) return undefined
  return { modifiers: modifiers as Modifier[], key }
}

export function pastes({ modifiers, key: { code } }: KeyPress): boolean {
  if (code === 'KeyV') return modifiers.includes('Control') || modifiers.includes('Meta')
  return code === 'Insert' && modifiers.includes('Shift')
}

const keyNamed = (name: string): Key | undefined =>
  named.get(name) ?? (Array.from(name).length === 1 ? keyOf(name) : undefined)

export function modifierOf(name: string, isMac: boolean): Modifier | undefined {
  if (name === 'ControlOrMeta') return isMac ? 'Meta' : 'Control'
  return Object.hasOwn(MODIFIER_BITS, name) ? (name as Modifier) : undefined
}
