import { expect, it } from 'vitest'
import { resultBytes } from '../../../src/command-tasks/task-bytes.js'

it('the bytes of a result that was measured up to a limit are not known by that', () => {
  const result = { content: [{ type: 'text', text: 'x'.repeat(1000) }] }
  const exact = Buffer.byteLength(JSON.stringify(result))
  expect(resultBytes(result, 10)).toBeGreaterThan(10)
  expect(resultBytes(result)).toBe(exact)
  // Now it is.
  expect(resultBytes(result, 10)).toBe(exact)
})
