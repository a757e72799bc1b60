import { expect, it } from 'vitest'
import { instanceNotFound, toolsNotFound } from '../../../../src/command-tasks/instances/not-found.js'

it('names at most ten of the instances that exist, and 64 characters of each', () => {
  expect(instanceNotFound('nope', [])).toBe('Instance not found: nope. There is no instance.')
  expect(instanceNotFound('nope', ['calc', 'x'.repeat(65)])).toBe(
    `Instance not found: nope. Known instances: calc, ${'x'.repeat(64)}….`,
  )
  const many = Array.from({ length: 12 }, (_, at) => `i${at}`)
  expect(instanceNotFound('nope', many)).toMatch(/: i0, .*, i9, and 2 more\.$/)
})

it('names the tools that each instance lacks', () => {
  const offers = [
    { id: 'one', names: ['a', 'c'] },
    { id: 'two', names: ['b'] },
  ]
  expect(toolsNotFound(['a', 'b'], offers)).toBe(
    'No connected instance has all tools of the task (a, b): one (has no b), two (has no a).',
  )
})
