import { expect, it } from 'vitest'
import { allowedCommand } from '../../../src/tools/command-policy.js'

it.each([
  ['the command', { command: 'x'.repeat(65_537) }],
  ['the arguments', { command: 'echo', args: ['x'.repeat(40_000), 'x'.repeat(40_000)] }],
  ['the variables', { command: 'echo', env: { A: 'x'.repeat(65_533) } }],
])('the text of a call is limited, with %s', (_what, request) => {
  const policy = { allow: [request.command], env: ['A'] }
  expect(allowedCommand(policy, request)).toMatchObject({ field: 'params' })
  expect(allowedCommand(policy, { command: request.command.slice(0, 4), args: [], env: {} })).not.toMatchObject({
    field: 'params',
  })
})

it('the text of a call may have 65,536 characters in all', () => {
  const policy = { allow: ['echo'], env: ['A'] }
  const request = { command: 'echo', args: ['x'.repeat(65_000)], env: { A: 'x'.repeat(532) } }
  expect(allowedCommand(policy, request)).toMatchObject({ argv: ['echo', request.args[0]] })
})
