import { expect, it } from 'vitest'
import { errorTypeOf } from '../../../../src/protocol/telemetry.js'

it.each([
  [Object.assign(new Error('m'), { code: 'ENOENT' }), 'ENOENT'],
  [new TypeError('m'), 'TypeError'],
  [Object.assign(new Error('m'), { code: 'the prompt of somebody' }), 'Error'],
  [Object.assign(new Error('m'), { name: 'SECRET '.repeat(1000) }), '_OTHER'],
  [Object.defineProperty(new Error('m'), 'code', { get: () => JSON.parse('{') as unknown }), '_OTHER'],
  ['text', '_OTHER'],
  [undefined, '_OTHER'],
])('F12: the type of an error is a short word, and none of its content: %#', (error, type) => {
  expect(errorTypeOf(error)).toBe(type)
})
