/** The text of a configuration: what it may have besides strict JSON. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfigJson } from '../../../src/protocol/config-json.js'

describe('parseConfigJson', () => {
  it.each([
    ['{ "a": 1 } // the end', { a: 1 }],
    ['// the start\r\n{ "a": /* one\n or two */ 1 }', { a: 1 }],
    ['{ "a": [1, 2,], "b": { "c": 3 /* last */ , // really\n }, }', { a: [1, 2], b: { c: 3 } }],
    ['\uFEFF{ "a": 1 }', { a: 1 }],
    ['{ "url": "https://x//y", "glob": "/*,]", "comma": ",}" }', { url: 'https://x//y', glob: '/*,]', comma: ',}' }],
    ['[]', []],
  ])('reads %j', (text, value) => {
    expect(parseConfigJson(text)).toEqual(value)
  })

  it.each([
    '[,]',
    '{,}',
    '[1,,]',
    '[,1]',
    '{ "a": 1 /* no end',
    '{ "a": 1 / }',
    '{ "a" }',
    '',
    '// only this',
    "{ 'a': 1 }",
  ])('refuses %j', (text) => {
    expect(() => parseConfigJson(text)).toThrow(SyntaxError)
  })

  it('names the place of a mistake in the text', () => {
    const mistake = (text: string): string => {
      try {
        parseConfigJson(text)
      } catch (error) {
        return (error as Error).message
      }
      return 'none'
    }
    expect(mistake('/* a\n b */\n[1, // c\n  x]')).toBe(mistake('    \n     \n[1,     \n  x]'))
  })

  it('reads every JSON text as JSON.parse does, however deep', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(() => parseConfigJson(deep)).not.toThrow()
    expect(Object.keys(parseConfigJson('{"__proto__": 1}') as object)).toEqual(['__proto__'])
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseConfigJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('reads every value with comments and commas in all places', () => {
    const noise = fc.constantFrom('', ' ', '// x, ] }\n', '/* " */', '/**/\r\n')
    const written: fc.Arbitrary<{ text: string; value: unknown }> = fc.letrec<{
      any: { text: string; value: unknown }
    }>((tie) => ({
      any: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.jsonValue({ maxDepth: 0 }).map((value) => ({ text: JSON.stringify(value), value })),
        fc.tuple(fc.array(tie('any'), { maxLength: 4 }), noise, fc.boolean()).map(([items, between, isLast]) => ({
          text: `[${between}${items.map(({ text }) => text + between).join(`,${between}`)}${isLast && items.length > 0 ? `,${between}` : ''}]`,
          value: items.map(({ value }) => value),
        })),
      ),
    })).any
    fc.assert(
      fc.property(written, ({ text, value }) => {
        expect(parseConfigJson(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})
