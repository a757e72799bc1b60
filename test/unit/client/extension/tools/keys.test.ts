/** The keys that a name stands for. */
import { describe, expect, it } from 'vitest'
import { keyOf, modifierOf, parseKeys, pastes } from '../../../../../src/client/extension/tools/keys.js'

describe('the name of a key', () => {
  it.each([
    ['a', [], { key: 'a', code: 'KeyA', keyCode: 65, text: 'a' }],
    ['A', [], { key: 'A', code: 'KeyA', keyCode: 65, text: 'A' }],
    ['Shift+a', ['Shift'], { key: 'A', code: 'KeyA', keyCode: 65, text: 'A' }],
    ['Shift+1', ['Shift'], { key: '!', code: 'Digit1', keyCode: 49, text: '!' }],
    ['Control+Shift+ArrowLeft', ['Control', 'Shift'], { key: 'ArrowLeft', code: 'ArrowLeft', keyCode: 37 }],
    ['Enter', [], { key: 'Enter', code: 'Enter', keyCode: 13, text: '\r' }],
    ['Space', [], { key: ' ', code: 'Space', keyCode: 32, text: ' ' }],
    ['+', [], { key: '+', code: 'Equal', keyCode: 187, text: '+' }],
    ['Control++', ['Control'], { key: '+', code: 'Equal', keyCode: 187, text: '+' }],
    ['ControlOrMeta+c', ['Control'], { key: 'c', code: 'KeyC', keyCode: 67, text: 'c' }],
    ['F12', [], { key: 'F12', code: 'F12', keyCode: 123 }],
    ['é', [], { key: 'é', code: '', keyCode: 0, text: 'é' }],
    ['🎉', [], { key: '🎉', code: '', keyCode: 0, text: '🎉' }],
    ['Shift', [], { key: 'Shift', code: 'ShiftLeft', keyCode: 16, location: 1 }],
  ])('%s', (name, modifiers, key) => {
    expect(parseKeys(name, false)).toEqual({ modifiers, key })
  })

  it.each(['', 'Foo', 'Hyper+a', 'a+b', 'Control+', 'toString+a', 'constructor'])('%j is none', (name) => {
    expect(parseKeys(name, false)).toBeUndefined()
  })

  it('is another one on a Mac', () => {
    expect(modifierOf('ControlOrMeta', true)).toBe('Meta')
    expect(modifierOf('Control', true)).toBe('Control')
  })

  it('of a character that ends a line is Enter', () => {
    expect([keyOf('\n').key, keyOf('\r').key, keyOf('\t').key]).toEqual(['Enter', 'Enter', 'Tab'])
  })

  it.each(['Control+v', 'Meta+v', 'Control+Shift+v', 'ControlOrMeta+V', 'Shift+Insert'])('%s pastes', (name) => {
    const pressed = parseKeys(name, false)
    expect(pressed && pastes(pressed)).toBe(true)
  })

  it.each(['v', 'Shift+v', 'Alt+v', 'Control+c', 'Insert', 'Control+Insert'])('%s does not paste', (name) => {
    const pressed = parseKeys(name, false)
    expect(pressed && pastes(pressed)).toBe(false)
  })
})
