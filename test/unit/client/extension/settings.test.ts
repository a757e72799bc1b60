/** What the person enters on the options page. */
import { expect, it } from 'vitest'
import { checkSettings, DEFAULT_SETTINGS, readSettings } from '../../../../src/client/extension/settings.js'

const entered = { url: 'http://127.0.0.1:3300', token: '', name: 'browser' }

it('takes what is valid, without the spaces around it', () => {
  expect(checkSettings({ url: ' https://tasks.example:8443/base ', token: ' secret\n', name: ' work ' })).toEqual({
    url: 'https://tasks.example:8443/base',
    token: 'secret',
    name: 'work',
    isOn: true,
  })
})

it.each([
  'http://127.0.0.1:3300',
  'http://127.9.9.9',
  'http://localhost:1',
  'http://[::1]:3300',
  'https://host.example',
])('takes the address %s', (url) => expect(checkSettings({ ...entered, url })).toMatchObject({ url, isOn: true }))

it.each([
  ['', /begins with http/],
  ['127.0.0.1:3300', /begins with http/],
  ['ws://127.0.0.1:3300', /begins with http/],
  ['http://192.168.0.7:3300', /Use https/],
  ['http://127.0.0.1.example', /Use https/],
  ['http://user:secret@127.0.0.1:3300', /its own field/],
])('refuses the address %j', (url, problem) => {
  expect(checkSettings({ ...entered, url })).toEqual({ problems: { url: expect.stringMatching(problem) as string } })
})

it('names every field that is wrong', () => {
  const checked = checkSettings({ url: 'x', token: 'two words', name: 'über' })
  expect(Object.keys('problems' in checked ? checked.problems : {})).toEqual(['url', 'token', 'name'])
})

it('reads what was stored, and falls back on the defaults', () => {
  const stored = { ...entered, token: 't', isOn: false, savedAs: 'x' }
  expect(readSettings(stored)).toEqual({ ...entered, token: 't', isOn: false })
  for (const unreadable of [undefined, null, 'x', { url: 7 }]) {
    expect(readSettings(unreadable)).toEqual(DEFAULT_SETTINGS)
  }
})
