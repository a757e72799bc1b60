/** Errors about invalid input: the field, the value, and what was expected. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { InvalidInputError } from '../../../src/errors.js'
import { parseInput } from '../../../src/protocol/parse.js'
import { strictObject } from '../../../src/protocol/strict-object.js'
import { preview } from '../../../src/data/preview.js'

const schema = strictObject({
  name: z.string().min(1).max(3),
  mode: z.enum(['a', 'b']).optional(),
  list: z.array(z.number().int().min(0).max(9)).max(2).optional(),
  more: z.custom<Date>((value) => value instanceof Date, 'a Date').optional(),
  inner: strictObject({}).optional(),
})

describe('a value', () => {
  it.each([
    [{}, 'input.name: got undefined, expected a string.'],
    [null, 'input: got null, expected an object.'],
    [{ name: '' }, 'input.name: got "", expected at least 1 character(s).'],
    [{ name: 'abcd' }, 'input.name: got "abcd", expected at most 3 characters.'],
    [{ name: 'a', mode: 'c' }, 'input.mode: got "c", expected one of "a", "b".'],
    [{ name: 'a', list: [1, 'x'] }, 'input.list[1]: got "x", expected a number.'],
    [{ name: 'a', list: [10] }, 'input.list[0]: got 10, expected at most 9.'],
    [{ name: 'a', list: [-1] }, 'input.list[0]: got -1, expected at least 0.'],
    [{ name: 'a', list: [1, 2, 3] }, 'input.list: got an array of 3, expected at most 2.'],
    [{ name: 'a', nmae: 1 }, 'input.nmae: got 1, expected a known field; the nearest is name.'],
    [{ nmae: 'a' }, 'input.nmae: got "a", expected a known field; the nearest is name.'],
    [{ name: 'a', zz: 1 }, 'input.zz: got 1, expected a known field; the fields are name, mode, list, more, inner.'],
    [{ name: 'a', inner: { zz: 1 } }, 'input.inner.zz: got 1, expected a known field; there are none.'],
    [{ name: 'a', more: 'x' }, 'input.more: got "x", expected a Date.'],
  ])('that is invalid is reported in one sentence: %j', (value, message) => {
    expect(() => parseInput(schema, value, 'input')).toThrow(InvalidInputError)
    expect(() => parseInput(schema, value, 'input')).toThrow(message)
  })

  it('that is missing where any value will do is reported in words', () => {
    expect(() => parseInput(z.strictObject({ any: z.unknown() }), {}, 'input')).toThrow(
      'input.any: got undefined, expected a value.',
    )
  })

  it('with an unknown field is reported also where the schema is not ours', () => {
    const foreign = z.strictObject({ any: z.string() })
    expect(() => parseInput(foreign, { any: 'a', amy: 1 }, 'input')).toThrow(
      'input.amy: got 1, expected a known field.',
    )
  })

  it('has the fields of a schema that was made from another one', () => {
    const less = schema.omit({ name: true }).extend({ title: z.string() })
    expect(() => parseInput(less, { title: '', name: 'a' }, 'input')).toThrow(
      'the fields are mode, list, more, inner, title.',
    )
  })

  it('that is valid is returned as the schema parses it', () => {
    expect(parseInput(schema, { name: 'a', mode: 'b' }, 'input')).toEqual({ name: 'a', mode: 'b' })
  })
})

describe('a preview', () => {
  it.each([
    ['text', '"text"'],
    [5n, '5n'],
    [() => 1, 'a function'],
    [null, 'null'],
    [undefined, 'undefined'],
    [Symbol('s'), 'Symbol(s)'],
    [new Error('why'), 'Error: why'],
    [[], 'an empty array'],
    [[1, 2], 'an array of 2'],
    [{ a: 1n }, '{"a":"1n"}'],
    [{ toJSON: () => undefined }, 'undefined'],
  ])('shows %s', (value, text) => {
    expect(preview(value)).toBe(text)
  })

  it('is short, and never throws', () => {
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    expect(preview(circular)).toBe('an object that cannot be shown')
    expect(preview('😀'.repeat(100)).length).toBeLessThanOrEqual(80)
    expect(preview('😀'.repeat(100))).not.toMatch(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/)
  })
})
