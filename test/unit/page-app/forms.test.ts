/** Forms out of JSON Schemas. */
import { describe, expect, it } from 'vitest'
import { contentOf, fieldOfPath } from '../../../src/page/app/forms/form-content.js'
import { fieldsOf, WHOLE } from '../../../src/page/app/forms/form-fields.js'

const object = (properties: object, required: string[] = []) => fieldsOf({ type: 'object', properties, required })

describe('the fields of a form', () => {
  it('have a field for each simple type, with its label, description, limits and default', () => {
    const fields = object(
      {
        name: { type: 'string', title: 'Your name', description: 'In full.', default: 'Ada' },
        text: { type: 'string', maxLength: 2000 },
        mail: { type: 'string', format: 'email' },
        price: { type: 'number', minimum: 1, maximum: 9.5, default: 2 },
        count: { type: 'integer' },
        yes: { type: 'boolean' },
        sure: { type: 'boolean', default: true },
      },
      ['name', 'yes'],
    )
    expect(fields).toEqual([
      {
        name: 'name',
        label: 'Your name',
        description: 'In full.',
        isRequired: true,
        type: 'text',
        isLong: false,
        initial: 'Ada',
      },
      { name: 'text', label: 'text', isRequired: false, type: 'text', isLong: true, initial: '' },
      { name: 'mail', label: 'mail', isRequired: false, type: 'text', isLong: false, initial: '', format: 'email' },
      { name: 'price', label: 'price', isRequired: false, type: 'number', initial: '2', minimum: 1, maximum: 9.5 },
      { name: 'count', label: 'count', isRequired: false, type: 'integer', initial: '' },
      { name: 'yes', label: 'yes', isRequired: true, type: 'boolean', initial: 'false' },
      { name: 'sure', label: 'sure', isRequired: false, type: 'boolean', initial: 'true' },
    ])
  })

  it('offer the values of an enum, with the titles of each way to write them', () => {
    const choices = (schema: object): unknown => {
      const [field] = object({ x: schema })
      return field?.type === 'choice' && [field.initial, ...field.choices.map(({ label }) => label)]
    }
    expect(choices({ type: 'string', enum: ['a', 'b'], default: 'b' })).toEqual(['1', 'a', 'b'])
    expect(choices({ enum: ['a', 'b'], enumNames: ['A!', 'B!'] })).toEqual(['', 'A!', 'B!'])
    expect(choices({ oneOf: [{ const: 'a', title: 'A!' }, { const: 2 }] })).toEqual(['', 'A!', '2'])
    expect(choices({ anyOf: [{ const: null }, { const: true }] })).toEqual(['', 'null', 'true'])
  })

  it('take JSON for what no other field can enter', () => {
    const fields = object({
      list: { type: 'array', default: [1] },
      inner: { type: 'object' },
      any: true,
      both: { type: ['string', 'null'] },
    })
    expect(fields.map(({ name, type, initial }) => [name, type, initial])).toEqual([
      ['list', 'json', '[\n  1\n]'],
      ['inner', 'json', ''],
      ['any', 'json', ''],
      ['both', 'json', ''],
    ])
    expect(fieldsOf({ type: 'object', additionalProperties: true })).toMatchObject([{ name: WHOLE, type: 'json' }])
    expect(fieldsOf({ $ref: '#/x' })).toMatchObject([{ name: WHOLE, type: 'json' }])
    expect(fieldsOf({ type: 'object' })).toEqual([])
    expect(fieldsOf({ type: 'object', properties: {} })).toEqual([])
    expect(fieldsOf({ type: 'object', properties: {}, additionalProperties: {} })).toMatchObject([{ type: 'json' }])
  })
})

describe('the content of a form', () => {
  const fields = object(
    {
      name: { type: 'string' },
      note: { type: 'string' },
      count: { type: 'integer', minimum: 1, maximum: 5 },
      price: { type: 'number' },
      yes: { type: 'boolean' },
      color: { oneOf: [{ const: 'r' }, { const: 7 }] },
      list: { type: 'array' },
    },
    ['name', 'yes'],
  )

  it('has a value of its type for each entry, and nothing for the empty ones', () => {
    expect(contentOf(fields, { name: ' Ada ' }).content).toEqual({ name: ' Ada ', yes: false })
    expect(
      contentOf(fields, { name: 'A', count: '3', price: '-1.5e3', yes: 'true', color: '1', list: '[1, {"a": 2}]' })
        .content,
    ).toEqual({ name: 'A', count: 3, price: -1500, yes: true, color: 7, list: [1, { a: 2 }] })
  })

  it.each([
    [{ name: '' }, 'name', 'Fill this in.'],
    [{ count: '1.5' }, 'count', 'A whole number is needed, not 1.5.'],
    [{ count: '0' }, 'count', 'A number of at least 1 is needed.'],
    [{ count: '6' }, 'count', 'A number of at most 5 is needed.'],
    [{ price: 'x' }, 'price', 'A number is needed, not x.'],
    [{ price: 'Infinity' }, 'price', 'A number is needed, not Infinity.'],
    [{ list: '[1' }, 'list', /^JSON is needed: /],
  ])('says at the field what is wrong with %j', (entries, name, words) => {
    const { errors } = contentOf(fields, { name: 'A', ...entries })
    expect(Object.keys(errors ?? {})).toEqual([name])
    expect(errors?.[name]).toMatch(words)
  })

  it('can be one JSON object as a whole', () => {
    const whole = fieldsOf({ type: 'object', additionalProperties: {} })
    expect(contentOf(whole, { [WHOLE]: '{"a": 1}' }).content).toEqual({ a: 1 })
    expect(contentOf(whole, { [WHOLE]: '[1]' }).errors?.[WHOLE]).toMatch('An object is needed')
  })

  it('keeps a property named __proto__ a property', () => {
    const { content } = contentOf(object(JSON.parse('{"__proto__": {"type": "string"}}') as object), {
      ['__proto__']: 'x',
    })
    expect(Object.keys(content ?? {})).toEqual(['__proto__'])
  })

  it('finds the field that an error of the server is about', () => {
    expect(['name', 'list.0.a', 'names', ''].map((path) => fieldOfPath(path, fields))).toEqual([
      ...['name', 'list', undefined, undefined],
    ])
  })
})
