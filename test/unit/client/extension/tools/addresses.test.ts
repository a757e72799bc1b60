/** What counts as an address. */
import { expect, it } from 'vitest'
import { BrowserError } from '../../../../../src/client/extension/debuggee.js'
import { addressOf } from '../../../../../src/client/extension/tools/addresses.js'

const refusal = (url: string) => (url.startsWith('chrome:') ? new BrowserError('PAGE_NOT_ALLOWED', url) : undefined)

it.each([
  ['https://a.test/x', 'https://a.test/x'],
  ['a.test/x', 'https://a.test/x'],
  ['localhost:3000/x', 'http://localhost:3000/x'],
  [' 127.0.0.1:80 ', 'http://127.0.0.1:80'],
  ['[::1]:80', 'http://[::1]:80'],
  ['about:blank', 'about:blank'],
  ['data:text/html,x', 'data:text/html,x'],
])('%s is %s', (given, address) => {
  expect(addressOf(given, { refusal })).toBe(address)
})

it.each([
  ['chrome://settings', 'PAGE_NOT_ALLOWED'],
  ['JavaScript:alert(1)', 'PAGE_NOT_ALLOWED'],
  ['http://', 'INVALID_ARGUMENTS'],
  ['a b', 'INVALID_ARGUMENTS'],
])('%s is refused with %s', (given, code) => {
  expect(() => addressOf(given, { refusal })).toThrow(expect.objectContaining({ code }))
})
