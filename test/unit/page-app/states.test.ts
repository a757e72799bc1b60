/** Each state of a task has its colours in the styles of the page. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { LOOKS, STATES } from '../../../src/page/app/text/states.js'

const tokens = readFileSync('src/page/app/styles/tokens.css', 'utf8')

it.each(STATES)('%s has a colour for light and for dark', (state) => {
  expect(tokens.split(`--${LOOKS[state].tone}: #`)).toHaveLength(3)
})
