/** Substitution passes any goal unchanged: a model wrote it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { substitute } from '../../../src/runners/substitution.js'
import { checkProperty } from '../../support/property.js'

const texts = { id: 'id-1', name: 'name-1', goal: 'goal-1', message: undefined }

describe('substitution', () => {
  it.each([
    ['{goal}', 'goal-1'],
    ['{name} {id} {goal} {goal}', 'name-1 id-1 goal-1 goal-1'],
    ['--goal={goal}', '--goal=goal-1'],
    ['{{goal}}', '{goal-1}'],
    ['{Goal} { goal } {owner} ${} {} {message}', '{Goal} { goal } {owner} ${} {} {message}'],
    ['', ''],
  ])('turns %j into %j', (argument, expected) => {
    expect(substitute(argument, texts)).toBe(expected)
  })

  it('inserts any text unchanged and does not search it again', () => {
    const pieces = fc.array(fc.constantFrom('{goal}', '{name}', '{id}', '$&', "$'", '$1', '$$', '{', '}', 'é😀', '\n'))
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      pieces.map((all) => all.join('')),
    )
    return checkProperty(
      'substitution is a single pass',
      fc.property(text, text, text, (goal, name, id) => {
        expect(substitute('<{goal}|{name}|{id}>', { goal, name, id })).toBe(`<${goal}|${name}|${id}>`)
      }),
    )
  })
})
