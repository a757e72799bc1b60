/** Reading a program's stdout as an output. */
import { describe, expect, it } from 'vitest'
import { parseOutput, type OutputFormat } from '../../../src/runners/output-parsers.js'

const parsed = (format: OutputFormat, text: string, droppedBytes = 0) => parseOutput(format, { text, droppedBytes })

describe('JSON', () => {
  it.each([
    ['an output, with fields of its own', { final_message: 'm', cost: 1 }, { final_message: 'm', cost: 1 }],
    ['an output with only variables', { emitted_vars: { a: [1] } }, { emitted_vars: { a: [1] } }],
    ['an empty object', {}, {}],
    ['an object with none of the fields of an output', { result: 'r' }, { emitted_vars: { result: 'r' } }],
    ['an object whose fields have other types', { final_message: 5 }, { emitted_vars: { final_message: 5 } }],
    ['an object with variables that are none', { emitted_vars: [1] }, { emitted_vars: { emitted_vars: [1] } }],
    ['a text', ' text ', { final_message: ' text ' }],
    ['a number', 5, { final_message: '5' }],
    ['a truth value', false, { final_message: 'false' }],
    ['an array', [1, { a: null }], { final_message: '[1,{"a":null}]' }],
    ['null', null, {}],
  ])('that is %s', (_what, value, expected) => {
    expect(parsed('json', `\n${JSON.stringify(value, null, 2)}\n`)).toEqual(expected)
    expect(parsed('json-last-line', `{"not": "this"}\n${JSON.stringify(value)}\r\n\n`)).toEqual(expected)
  })

  it('may begin with a byte order mark', () => {
    expect(parsed('json', '\uFEFF{"final_message": "m"}')).toEqual({ final_message: 'm' })
    expect(parsed('json-last-line', '\uFEFF{"final_message": "m"}\n')).toEqual({ final_message: 'm' })
  })

  it('that is not JSON throws, with what was expected and received', () => {
    expect(() => parsed('json', '{"a":1}\n{"a":2}')).toThrow(
      String.raw`expected its stdout to be one JSON value, got "{\"a\":1}\n{\"a\":2}"`,
    )
    expect(() => parsed('json', '')).toThrow('got ""')
    expect(() => parsed('json-last-line', '{"a":1}\nbye\n')).toThrow(
      'expected the last line of its stdout to be a JSON value, got "bye"',
    )
    expect(() => parsed('json', 'x'.repeat(1e6))).toThrow(/^.{20,200}$/)
  })

  it('of a last line that was cut throws, even if the rest of it could be read', () => {
    expect(() => parsed('json-last-line', '345\n', 1)).toThrow('a last line that fits into maxOutputBytes')
    expect(parsed('json-last-line', '12\n345\n', 1)).toEqual({ final_message: '345' })
  })
})

describe('text', () => {
  it('says that a part is lost in place of how much is left out', () => {
    const text = parseOutput('text', { text: ' end\n', droppedBytes: 7, isLost: true })
    expect(text).toEqual({
      final_message: '[a part of the output is missing: it could not be written to the store]\nend',
    })
  })

  it('is trimmed, and says how much is missing', () => {
    expect(parsed('text', '\n a b \n')).toEqual({ final_message: 'a b' })
    expect(parsed('text', 'end\n', 7)).toEqual({ final_message: '[7 bytes are left out here]\nend' })
  })
})
