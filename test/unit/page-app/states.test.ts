/** Each state of a task has its colours and its class in the styles of the page. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { STATES } from '../../../src/page/app/text/states.js'

const style = (name: string): string => readFileSync(`src/page/app/styles/${name}.css`, 'utf8')

it.each(STATES)('%s has a class, and a colour for light and for dark', (state) => {
  expect(style('states')).toContain(`.state-${state} {\n  color: var(--${state});\n}`)
  expect(style('tokens').split(`--${state}: #`)).toHaveLength(3)
})
