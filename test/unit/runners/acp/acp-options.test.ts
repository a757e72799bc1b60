/** The options of `acpRunner`: an error names the option, what came and what was expected. */
import { describe, expect, it } from 'vitest'
import { policyFor, type AcpRunnerOptions } from '../../../../src/runners/acp/acp-options.js'
import { acpRunner } from '../../../../src/runners/acp/index.js'

const refusal = (options: object): string => {
  try {
    acpRunner(options as AcpRunnerOptions)
    return 'accepted'
  } catch (error) {
    return (error as Error).message
  }
}
const valid = { command: 'agent', permissions: 'ask' }

describe('the options', () => {
  it.each([
    [{ permissions: 'ask' }, 'options.command'],
    [{ command: 'agent' }, "options.permissions: got undefined, expected 'allow', 'deny' or 'ask'"],
    [{ ...valid, permissions: 'yes' }, 'options.permissions: got "yes"'],
    [{ ...valid, permissions: { write: 'allow' } }, 'options.permissions.write'],
    [{ ...valid, permissions: { read: 'yes' } }, 'options.permissions.read: got "yes"'],
    [{ ...valid, args: 'x' }, 'options.args'],
    [{ ...valid, cwd: '' }, 'options.cwd'],
    [{ ...valid, graceMs: -1 }, 'options.graceMs'],
    [{ ...valid, killSignal: 'SIGNOTHING' }, 'options.killSignal'],
    [{ ...valid, maxMessageBytes: 0 }, 'maxMessageBytes'],
    [{ ...valid, startTimeoutMs: 0 }, 'startTimeoutMs'],
    [{ ...valid, clock: {} }, 'options.clock'],
    [{ ...valid, commands: {} }, 'options.commands.allow'],
    [{ ...valid, commands: { allow: ['./x'] } }, 'options.commands.allow[0]'],
    [{ ...valid, commands: { allow: [], defaultTimeoutSeconds: 5 } }, 'options.commands.defaultTimeoutSeconds'],
    [{ ...valid, survivesHost: true }, 'options.survivesHost'],
    [{ ...valid, parse: 'json' }, 'options.parse'],
  ])('refuses %o', (options, expected) => {
    expect(refusal(options)).toContain(expected)
  })

  it('accepts all there are', () => {
    const permissions = { read: 'allow', default: 'deny' }
    const commands = { allow: ['npm'], env: ['CI'], cwd: '/tmp' }
    expect(
      refusal({
        ...valid,
        permissions,
        commands,
        args: ['a'],
        env: { A: undefined },
        maxMessageBytes: 1,
        startTimeoutMs: 1,
        graceMs: 0,
      }),
    ).toBe('accepted')
  })
})

describe('a policy', () => {
  it('is that of the kind, then the default, then to ask', () => {
    expect(policyFor('allow', 'other')).toBe('allow')
    expect(policyFor({ read: 'deny', default: 'allow' }, 'read')).toBe('deny')
    expect(policyFor({ read: 'deny', default: 'allow' }, 'edit')).toBe('allow')
    expect(policyFor({ read: 'deny' }, 'edit')).toBe('ask')
  })
})
